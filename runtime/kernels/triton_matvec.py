"""Products of rows with packed matrices on a device, as Triton programs.

Weights are unpacked in registers as they are read; see docs/formats.md for where each byte lies.
Importing this module imports Triton, and compiles nothing.
"""

import itertools

import torch
import triton
import triton.language as tl

from runtime.kernels.matrix import Matrix
from runtime.kernels.tiles import TILES, Tile, TileChoice
from runtime.protocol.values import WeightFormat
from runtime.spec.tensors import ROW_BLOCK, matrix_bytes

_Q8, _Q4, _FP4, _Q4A, _Q6, _Q3, _Q2, _Q4K, _Q6K, _Q5K, _Q3K, _Q2K = (
    tl.constexpr(number) for number in range(12)
)
_BF16, _F16, _F32 = (tl.constexpr(number) for number in (2, 3, 4))
KINDS = {
    WeightFormat.Q8_G32: 0,
    WeightFormat.Q4_G32: 1,
    WeightFormat.MXFP4: 2,
    WeightFormat.Q4A_G32: 3,
    WeightFormat.Q6_G32: 4,
    WeightFormat.Q3_G16: 5,
    WeightFormat.Q2_G16: 6,
    WeightFormat.Q4K_G32: 7,
    WeightFormat.Q6K_G16: 8,
    WeightFormat.Q5K_G32: 9,
    WeightFormat.Q3K_G16: 10,
    WeightFormat.Q2K_G16: 11,
}
"""The formats whose groups are unpacked here."""
PLAIN_KINDS = {WeightFormat.F32: 4, WeightFormat.F16: 3, WeightFormat.BF16: 2}
"""Plain numbers: they are widened as they are read, instead of into a copy before each use."""
_HEAD_BYTES = {3: 32, 4: 32, 5: 32, 6: 32}
_SCALE_BYTES = {0: 16, 1: 16, 2: 8, 8: 18, 10: 18, 11: 20}
_VECTORS = {0: 8, 1: 4, 2: 4, 3: 4, 4: 6, 5: 3, 6: 2, 7: 4, 8: 6, 9: 5, 10: 3, 11: 2}
_GROUPED_ROWS, _GROUPED_COLUMNS, _GROUPED_TOKENS = 32, 32, 16
"""What a program unpacks at a time where a matrix meets many rows of activations, and how many of
these it takes together."""
MANY = 8
"""With more rows a matrix on average, what is unpacked is used for several."""


def constants_of(weight_format: WeightFormat, tile: Tile = TILES[0]) -> dict[str, int]:
    """Return what the program of a format is compiled with."""
    kind = KINDS[weight_format]
    scale_bytes = _SCALE_BYTES.get(kind, 16)
    return {
        "kind": kind,
        "head_bytes": _HEAD_BYTES.get(kind, 0),
        "scale_bytes": scale_bytes,
        "group_bytes": scale_bytes + 32 * _VECTORS[kind],
        "num_rows": tile.rows,
        "num_columns": tile.columns,
        "row_block": ROW_BLOCK,
    }


def grouped_constants_of(weight_format: WeightFormat) -> dict[str, int]:
    """Return what the program for many rows is compiled with."""
    tile = {"num_rows": _GROUPED_ROWS, "num_columns": _GROUPED_COLUMNS}
    return {**constants_of(weight_format), **tile, "num_tokens": _GROUPED_TOKENS}


def multiply_pairs(
    matrices: list[Matrix], x: torch.Tensor, sources: torch.Tensor, tiles: TileChoice
) -> torch.Tensor:
    """Return for each matrix its product with one row of ``x``: f32 ``[len(matrices), rows]``.

    Matrices are of one shape and format out of ``KINDS`` or ``PLAIN_KINDS`` and lie where ``x``
    does; ``sources`` (int64, there too) says which row each takes. A packed matrix that comes
    several times in a row is unpacked once for some rows of ``x`` together, if there are many.
    """
    if matrices[0].format in PLAIN_KINDS:
        return _multiply_plain(matrices, x, sources, tiles)
    counts = [len(list(same)) for _, same in itertools.groupby(m.address for m in matrices)]
    if len(matrices) > MANY * len(counts):
        return _multiply_groups(matrices, counts, x, sources)
    return _multiply_rows(matrices, x, sources, tiles)


def plain_constants_of(weight_format: WeightFormat, tile: Tile = TILES[0]) -> dict[str, int]:
    """Return what the program of plain numbers is compiled with."""
    kind = PLAIN_KINDS[weight_format]
    return {"kind": kind, "num_rows": tile.rows, "num_columns": tile.columns}


def _multiply_plain(
    matrices: list[Matrix], x: torch.Tensor, sources: torch.Tensor, tiles: TileChoice
) -> torch.Tensor:
    """Return the products of matrices of plain numbers with a row each."""
    first, bases = matrices[0], _bases_of(matrices, x.device)
    out = torch.empty(len(matrices), first.rows, dtype=torch.float32, device=x.device)

    def launch(tile: Tile) -> None:
        grid = (len(matrices), triton.cdiv(first.rows, tile.rows))
        multiply_plain[grid](
            bases,
            x,
            sources,
            out,
            first.rows,
            first.columns,
            x.stride(0),
            **plain_constants_of(first.format, tile),
            num_warps=tile.warps,
        )

    launch(tiles.of(_kind_of(matrices), x.device, launch))
    return out


def _kind_of(matrices: list[Matrix]) -> tuple[object, ...]:
    """Return what a product's pace depends on."""
    first = matrices[0]
    return (first.format, first.rows, first.columns, len(matrices))


def _bases_of(matrices: list[Matrix], device: torch.device) -> torch.Tensor:
    """Return where matrices begin; of one alone nothing crosses the link, so it can be recorded."""
    address = matrices[0].address
    if all(matrix.address == address for matrix in matrices):
        return torch.full((len(matrices),), address, dtype=torch.int64, device=device)
    return torch.tensor([each.address for each in matrices], dtype=torch.int64).to(device)


def _multiply_groups(
    matrices: list[Matrix], counts: list[int], x: torch.Tensor, sources: torch.Tensor
) -> torch.Tensor:
    """Return the products of matrices that follow each other so many times."""
    first = matrices[0]
    constants = grouped_constants_of(first.format)
    starts = list(itertools.accumulate(counts, initial=0))[:-1]
    bases = [matrices[start].address for start in starts]
    plan = torch.tensor([bases, starts, counts], dtype=torch.int64).to(x.device)
    out = torch.empty(len(matrices), first.rows, dtype=torch.float32, device=x.device)
    block_bytes = matrix_bytes(first.format, ROW_BLOCK, first.columns)
    row_tiles = triton.cdiv(first.rows, _GROUPED_ROWS)
    grid = (len(counts), row_tiles, triton.cdiv(max(counts), _GROUPED_TOKENS))
    multiply_groups[grid](
        plan[0],
        plan[1],
        plan[2],
        x,
        sources,
        out,
        first.rows,
        first.columns,
        x.stride(0),
        block_bytes,
        **constants,
    )
    return out


def _multiply_rows(
    matrices: list[Matrix], x: torch.Tensor, sources: torch.Tensor, tiles: TileChoice
) -> torch.Tensor:
    """Return the products of matrices with a row each."""
    first, bases = matrices[0], _bases_of(matrices, x.device)
    out = torch.empty(len(matrices), first.rows, dtype=torch.float32, device=x.device)
    block_bytes = matrix_bytes(first.format, ROW_BLOCK, first.columns)

    def launch(tile: Tile) -> None:
        constants = constants_of(first.format, tile)
        grid = (len(matrices), triton.cdiv(first.rows, tile.rows))
        multiply[grid](
            bases,
            x,
            sources,
            out,
            first.rows,
            first.columns,
            x.stride(0),
            block_bytes,
            **constants,
            num_warps=tile.warps,
        )

    launch(tiles.of(_kind_of(matrices), x.device, launch))
    return out


@triton.jit
def multiply(  # noqa: PLR0913, PLR0917 - a launch takes one flat list
    bases: tl.tensor,
    x: tl.tensor,
    sources: tl.tensor,
    out: tl.tensor,
    rows: tl.tensor,
    columns: tl.tensor,
    x_stride: tl.tensor,
    block_bytes: tl.tensor,
    kind: tl.constexpr,
    head_bytes: tl.constexpr,
    scale_bytes: tl.constexpr,
    group_bytes: tl.constexpr,
    num_rows: tl.constexpr,
    num_columns: tl.constexpr,
    row_block: tl.constexpr,
) -> None:
    """Compute some rows of one matrix; one program for each matrix and tile of rows."""
    pair = tl.program_id(0)
    base = tl.load(bases + pair).to(tl.pointer_type(tl.uint8))
    source = tl.load(sources + pair)
    row = tl.program_id(1) * num_rows + tl.arange(0, num_rows)
    is_row = row < rows
    row_in_block = row % row_block
    block = base + (row // row_block).to(tl.int64) * block_bytes
    total = tl.zeros((num_rows,), tl.float32)
    for start in range(0, columns, num_columns):
        column = start + tl.arange(0, num_columns)
        is_here = is_row[:, None] & (column < columns)[None, :]
        group = block[:, None] + head_bytes + (column // 32)[None, :] * group_bytes
        weights = _weights(block, group, row_in_block, column, is_row, is_here, kind, scale_bytes)
        values = tl.load(x + source * x_stride + column, mask=column < columns, other=0.0)
        total += tl.sum(tl.where(is_here, weights, 0.0) * values[None, :], axis=1)
    tl.store(out + pair.to(tl.int64) * rows + row, total, mask=is_row)


@triton.jit
def multiply_plain(  # noqa: PLR0913, PLR0917 - a launch takes one flat list
    bases: tl.tensor,
    x: tl.tensor,
    sources: tl.tensor,
    out: tl.tensor,
    rows: tl.tensor,
    columns: tl.tensor,
    x_stride: tl.tensor,
    kind: tl.constexpr,
    num_rows: tl.constexpr,
    num_columns: tl.constexpr,
) -> None:
    """Compute some rows of one matrix of plain numbers, whose rows follow each other."""
    pair = tl.program_id(0)
    base = tl.load(bases + pair)
    source = tl.load(sources + pair)
    row = tl.program_id(1) * num_rows + tl.arange(0, num_rows)
    is_row = row < rows
    begin = row.to(tl.int64)[:, None] * columns
    total = tl.zeros((num_rows,), tl.float32)
    for start in range(0, columns, num_columns):
        column = start + tl.arange(0, num_columns)
        is_here = is_row[:, None] & (column < columns)[None, :]
        weights = _plain_weights(base, begin + column[None, :], is_here, kind)
        values = tl.load(x + source * x_stride + column, mask=column < columns, other=0.0)
        total += tl.sum(tl.where(is_here, weights, 0.0) * values[None, :], axis=1)
    tl.store(out + pair.to(tl.int64) * rows + row, total, mask=is_row)


@triton.jit
def _plain_weights(
    base: tl.tensor, place: tl.tensor, is_here: tl.tensor, kind: tl.constexpr
) -> tl.tensor:
    """Return numbers as f32; those of bf16 are the upper halves of such."""
    if kind == _F32:
        return tl.load(base.to(tl.pointer_type(tl.float32)) + place, mask=is_here, other=0.0)
    if kind == _F16:
        halves = tl.load(base.to(tl.pointer_type(tl.float16)) + place, mask=is_here, other=0.0)
        return halves.to(tl.float32)
    upper = tl.load(base.to(tl.pointer_type(tl.uint16)) + place, mask=is_here, other=0)
    return (upper.to(tl.uint32) << 16).to(tl.float32, bitcast=True)


@triton.jit
def multiply_groups(  # noqa: PLR0913, PLR0917 - a launch takes one flat list
    bases: tl.tensor,
    starts: tl.tensor,
    counts: tl.tensor,
    x: tl.tensor,
    sources: tl.tensor,
    out: tl.tensor,
    rows: tl.tensor,
    columns: tl.tensor,
    x_stride: tl.tensor,
    block_bytes: tl.tensor,
    kind: tl.constexpr,
    head_bytes: tl.constexpr,
    scale_bytes: tl.constexpr,
    group_bytes: tl.constexpr,
    num_rows: tl.constexpr,
    num_columns: tl.constexpr,
    row_block: tl.constexpr,
    num_tokens: tl.constexpr,
) -> None:
    """Compute some rows of one matrix for some of its rows of activations."""
    matrix = tl.program_id(0)
    first = tl.program_id(2) * num_tokens
    count = tl.load(counts + matrix)
    if first < count:
        base = tl.load(bases + matrix).to(tl.pointer_type(tl.uint8))
        token = first + tl.arange(0, num_tokens)
        is_token = token < count
        pair = tl.load(starts + matrix) + token
        source = tl.load(sources + pair, mask=is_token, other=0)
        row = tl.program_id(1) * num_rows + tl.arange(0, num_rows)
        is_row = row < rows
        row_in_block = row % row_block
        block = base + (row // row_block).to(tl.int64) * block_bytes
        total = tl.zeros((num_tokens, num_rows), tl.float32)
        for start in range(0, columns, num_columns):
            column = start + tl.arange(0, num_columns)
            is_column = column < columns
            is_here = is_row[:, None] & is_column[None, :]
            group = block[:, None] + head_bytes + (column // 32)[None, :] * group_bytes
            weights = _weights(
                block, group, row_in_block, column, is_row, is_here, kind, scale_bytes
            )
            values = tl.load(
                x + source[:, None] * x_stride + column[None, :],
                mask=is_token[:, None] & is_column[None, :],
                other=0.0,
            )
            own = tl.trans(tl.where(is_here, weights, 0.0))
            total = tl.dot(values, own, total, input_precision="ieee")
        place = out + pair[:, None] * rows + row[None, :]
        tl.store(place, total, mask=is_token[:, None] & is_row[None, :])


@triton.jit
def _weights(  # noqa: PLR0913, PLR0917 - a tile is described by many tensors
    block: tl.tensor,
    group: tl.tensor,
    row: tl.tensor,
    column: tl.tensor,
    is_row: tl.tensor,
    is_here: tl.tensor,
    kind: tl.constexpr,
    scale_bytes: tl.constexpr,
) -> tl.tensor:
    """Return the weights of a tile."""
    if kind == _Q4K:
        span = block[:, None] + (column // 256)[None, :] * 1152
        return _span_weights(span, row, column, is_here, has_fifths=False)
    if kind == _Q5K:
        span = block[:, None] + (column // 256)[None, :] * 1408
        return _span_weights(span, row, column, is_here, has_fifths=True)
    if kind == _Q6K:
        span = block[:, None] + (column // 256)[None, :] * 1680
        return _half_span_weights(span, row, column, is_here, kind)
    if kind == _Q3K:
        span = block[:, None] + (column // 256)[None, :] * 912
        return _half_span_weights(span, row, column, is_here, kind)
    if kind == _Q2K:
        span = block[:, None] + (column // 256)[None, :] * 672
        return _half_span_weights(span, row, column, is_here, kind)
    column = column % 32
    levels = _levels(group + scale_bytes, row, column, is_here, kind)
    if kind <= _Q4:
        scale = tl.load(
            (group + 2 * row[:, None]).to(tl.pointer_type(tl.float16)), mask=is_here, other=0
        )
        return levels * scale.to(tl.float32)
    if kind == _FP4:
        power = tl.load(group + row[:, None], mask=is_here, other=0).to(tl.int32)
        scale = (power << 23).to(tl.float32, bitcast=True)
        return tl.where(power < 2, 0.0, levels * scale)
    whole = tl.load(group + row[:, None], mask=is_here, other=0).to(tl.int32)
    least = tl.load(group + 8 + row[:, None], mask=is_here, other=0).to(tl.int32)
    if kind >= _Q3:
        shift = (column // 16 * 4)[None, :]
        whole = whole >> shift & 15
        least = least >> shift & 15
    unit = tl.load((block + 2 * row).to(tl.pointer_type(tl.float16)), mask=is_row, other=0)
    least_unit = tl.load(
        (block + 16 + 2 * row).to(tl.pointer_type(tl.float16)), mask=is_row, other=0
    )
    steps = unit.to(tl.float32)[:, None] * whole.to(tl.float32)
    return levels * steps - least_unit.to(tl.float32)[:, None] * least.to(tl.float32)


@triton.jit
def _span_weights(
    span: tl.tensor,
    row: tl.tensor,
    column: tl.tensor,
    is_here: tl.tensor,
    has_fifths: tl.constexpr,
) -> tl.tensor:
    """Return the weights of a tile in ``q4k_g32``, of which ``span`` holds 256 columns.

    With ``has_fifths`` it is in ``q5k_g32``.
    """
    group = (column % 256 // 32)[None, :]
    lane = (row * 4)[:, None] + (column % 4)[None, :]
    quad = (column % 32 // 4)[None, :]
    levels = span + 128 + lane
    vector = quad * 5 + group // 2 if has_fifths else group // 2 * 8 + quad
    pair = tl.load(levels + vector * 32, mask=is_here, other=0).to(tl.int32)
    level = pair >> group % 2 * 4 & 15
    if has_fifths:
        fifths = tl.load(levels + (quad * 5 + 4) * 32, mask=is_here, other=0).to(tl.int32)
        level = level | (fifths >> group & 1) << 4
    packed = span + 32 + group % 4 * 8 + row[:, None]
    scales = tl.load(packed, mask=is_here, other=0).to(tl.int32)
    leasts = tl.load(packed + 32, mask=is_here, other=0).to(tl.int32)
    nibbles = tl.load(packed + 64, mask=is_here, other=0).to(tl.int32)
    scale = tl.where(group < 4, scales & 63, nibbles & 15 | scales >> 2 & 48)
    least = tl.where(group < 4, leasts & 63, nibbles >> 4 | leasts >> 2 & 48)
    units = (span + 2 * row[:, None]).to(tl.pointer_type(tl.float16))
    unit = tl.load(units, mask=is_here, other=0).to(tl.float32)
    least_unit = tl.load(units + 8, mask=is_here, other=0).to(tl.float32)
    step = unit * scale.to(tl.float32)
    return level.to(tl.float32) * step - least_unit * least.to(tl.float32)


@triton.jit
def _half_span_weights(
    span: tl.tensor,
    row: tl.tensor,
    column: tl.tensor,
    is_here: tl.tensor,
    kind: tl.constexpr,
) -> tl.tensor:
    """Return the weights of a tile in ``q6k_g16``, ``q3k_g16`` or ``q2k_g16``.

    ``span`` holds 256 columns.
    """
    group = (column % 256 // 32)[None, :]
    lane = (row * 4)[:, None] + (column % 4)[None, :]
    quad = (column % 32 // 4)[None, :]
    scales = span + (32 if kind == _Q2K else 16)
    if kind == _Q6K:
        of_run = group % 4
        bundle = scales + 128 + (group // 4 * 8 + quad) * 96 + lane
        pairs = tl.load(bundle + of_run % 2 * 32, mask=is_here, other=0).to(tl.int32)
        twos = tl.load(bundle + 64, mask=is_here, other=0).to(tl.int32) >> of_run * 2 & 3
        level = (pairs >> of_run // 2 * 4 & 15 | twos << 4) - 32
    else:
        bundle = scales + 128 + quad * (64 if kind == _Q2K else 96) + lane
        twos = tl.load(bundle + group // 4 * 32, mask=is_here, other=0).to(tl.int32)
        level = twos >> group % 4 * 2 & 3
        if kind == _Q3K:
            thirds = tl.load(bundle + 64, mask=is_here, other=0).to(tl.int32) >> group & 1
            level = (level | thirds << 2) - 4
    halves = scales + (group * 8 + row[:, None]) * 2 + (column % 32 // 16)[None, :]
    stored = tl.load(halves, mask=is_here, other=0)
    units = (span + 2 * row[:, None]).to(tl.pointer_type(tl.float16))
    unit = tl.load(units, mask=is_here, other=0).to(tl.float32)
    if kind == _Q2K:
        both = stored.to(tl.int32)
        least_unit = tl.load(units + 8, mask=is_here, other=0).to(tl.float32)
        step = unit * (both & 15).to(tl.float32)
        return level.to(tl.float32) * step - least_unit * (both >> 4).to(tl.float32)
    scale = stored.to(tl.int8, bitcast=True).to(tl.float32)
    return level.to(tl.float32) * (unit * scale)


@triton.jit
def _levels(
    vectors: tl.tensor, row: tl.tensor, column: tl.tensor, is_here: tl.tensor, kind: tl.constexpr
) -> tl.tensor:
    """Return the levels of a tile as f32."""
    lane = (row * 4)[:, None] + (column % 4)[None, :]
    quad = (column // 4)[None, :]
    if kind == _Q8:
        stored = tl.load(vectors + quad * 32 + lane, mask=is_here, other=0)
        return stored.to(tl.int8, bitcast=True).to(tl.float32)
    if kind <= _Q6:
        pair = tl.load(vectors + quad % 4 * 32 + lane, mask=is_here, other=0).to(tl.int32)
        level = pair >> quad // 4 * 4 & 15
        if kind == _Q4:
            return (level - 8).to(tl.float32)
        if kind == _FP4:
            return _fp4_level(level)
        if kind == _Q6:
            upper = tl.load(vectors + (4 + quad // 4) * 32 + lane, mask=is_here, other=0).to(
                tl.int32
            )
            level = level | (upper >> quad % 4 * 2 & 3) << 4
        return level.to(tl.float32)
    lower = tl.load(vectors + quad // 4 * 32 + lane, mask=is_here, other=0).to(tl.int32)
    level = lower >> quad % 4 * 2 & 3
    if kind == _Q3:
        third = tl.load(vectors + 64 + lane + quad * 0, mask=is_here, other=0).to(tl.int32)
        level = level | (third >> quad & 1) << 2
    return level.to(tl.float32)


@triton.jit
def _fp4_level(nibble: tl.tensor) -> tl.tensor:
    """Return what a nibble of MXFP4 stands for: sign, two bits of exponent, one of fraction."""
    power = nibble >> 1 & 3
    half = (nibble & 1).to(tl.float32)
    above = (1.0 + half * 0.5) * ((power + 126) << 23).to(tl.float32, bitcast=True)
    value = tl.where(power == 0, half * 0.5, above)
    return tl.where(nibble >= 8, -value, value)
