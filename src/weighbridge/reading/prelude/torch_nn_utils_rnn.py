"""torch.nn.utils.rnn: sequences of several lengths."""

import collections

import torch

PackedSequence = collections.namedtuple(
    "PackedSequence", ["data", "batch_sizes", "sorted_indices", "unsorted_indices"], defaults=[None, None, None],
)


def _lengths(lengths):
    return lengths.tolist() if hasattr(lengths, "tolist") else [int(x) for x in lengths]


def pack_padded_sequence(input, lengths, batch_first=False, enforce_sorted=True):
    sizes = sorted(_lengths(lengths), reverse=True)
    batch_sizes = [sum(1 for n in sizes if n > step) for step in range(sizes[0])]
    if batch_first:
        input = input.transpose(0, 1)
    data = torch.cat([input[step, :count] for step, count in enumerate(batch_sizes)])
    order = None if enforce_sorted else torch.argsort(torch.tensor(_lengths(lengths)), descending=True)
    back = None if order is None else torch.argsort(order)
    return PackedSequence(data, torch.tensor(batch_sizes), order, back)


def pad_packed_sequence(sequence, batch_first=False, padding_value=0.0, total_length=None):
    counts = _lengths(sequence.batch_sizes)
    longest = len(counts) if total_length is None else total_length
    lengths = torch.tensor([sum(1 for c in counts if c > i) for i in range(counts[0])])
    shape = (counts[0], longest) if batch_first else (longest, counts[0])
    output = torch.full((*shape, *sequence.data.shape[1:]), padding_value, dtype=sequence.data.dtype, device=sequence.data.device)
    start = 0
    for step, count in enumerate(counts):
        if batch_first:
            output[:count, step] = sequence.data[start:start + count]
        else:
            output[step, :count] = sequence.data[start:start + count]
        start += count
    if sequence.unsorted_indices is not None:
        output = output.index_select(0 if batch_first else 1, sequence.unsorted_indices)
        lengths = lengths[sequence.unsorted_indices]
    return output, lengths


def pad_sequence(sequences, batch_first=False, padding_value=0.0, padding_side="right"):
    longest = max(s.size(0) for s in sequences)
    first = sequences[0]
    shape = (len(sequences), longest) if batch_first else (longest, len(sequences))
    output = torch.full((*shape, *first.shape[1:]), padding_value, dtype=first.dtype, device=first.device)
    for i, sequence in enumerate(sequences):
        length = sequence.size(0)
        where = slice(0, length) if padding_side == "right" else slice(longest - length, longest)
        if batch_first:
            output[i, where] = sequence
        else:
            output[where, i] = sequence
    return output


def unpad_sequence(padded_sequences, lengths, batch_first=False):
    if not batch_first:
        padded_sequences = padded_sequences.transpose(0, 1)
    return [sequence[:length] for sequence, length in zip(padded_sequences, _lengths(lengths))]


def pack_sequence(sequences, enforce_sorted=True):
    return pack_padded_sequence(pad_sequence(sequences), [s.size(0) for s in sequences], enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences):
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)
