"""What a model's forward returns: named values, in order, without those that are None. Interpreted text, never imported."""


class ModelOutput:
    def __init__(self, *args, **kwargs):
        self.update(*args, **kwargs)

    def __post_init__(self):
        pass

    def _present(self):
        return {name: value for name, value in self.__dict__.items() if value is not None}

    def __getitem__(self, key):
        if isinstance(key, str):
            return self._present()[key]
        return self.to_tuple()[key]

    def __setitem__(self, key, value):
        setattr(self, key, value)

    def __iter__(self):
        return iter(list(self._present()))

    def __len__(self):
        return len(self._present())

    def __contains__(self, key):
        return key in self._present()

    def get(self, key, default=None):
        return self._present().get(key, default)

    def pop(self, key, default=None):
        value = self._present().get(key, default)
        setattr(self, key, None)
        return value

    def keys(self):
        return list(self._present())

    def values(self):
        return list(self._present().values())

    def items(self):
        return list(self._present().items())

    def update(self, other=(), **kwargs):
        for key, value in {**dict(other), **kwargs}.items():
            setattr(self, key, value)

    def to_tuple(self):
        return tuple(self._present().values())
