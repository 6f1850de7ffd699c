"""addict's dictionary whose keys read as attributes; what is absent reads as an empty one. Interpreted text, never imported."""


def nested(value):
    if isinstance(value, Dict):
        return value
    if isinstance(value, dict):
        return Dict(value)
    if isinstance(value, (list, tuple)):
        return type(value)([nested(part) for part in value])
    return value


class Dict(dict):
    def __init__(self, *args, **kwargs):
        for given in [*args, kwargs]:
            for name, value in dict(given or {}).items():
                self[name] = nested(value)

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return self[name] if name in self else Dict()

    def __setattr__(self, name, value):
        self[name] = value

    def __delattr__(self, name):
        del self[name]

    def __missing__(self, name):
        return Dict()
