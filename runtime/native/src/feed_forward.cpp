// Gated feed-forward blocks (experts) on the rows that chose them.
//
// Two jobs with a barrier between them. The first forms activation(gate x, up x) for chunks of
// channels of every block. A task of the second owns some outputs for all rows and goes through
// the blocks in their order, so that every row is summed in that order whichever thread does it.
//
// Chunks are whole groups of channels: where the last matrix takes its inputs in 8 bits, the task
// that computed a group quantises it too. With few rows chunks are wide, so that memory is read in
// long runs.
#include <algorithm>
#include <array>
#include <vector>

#include "inputs.h"
#include "ops.h"
#include "pool.h"

namespace larder {
namespace {

constexpr int64_t kTaskX = 48;            // rows of x in a task
constexpr int64_t kFewRows = 12;          // of a block, with which tasks take more channels
constexpr int64_t kWideChannels = 128;
constexpr int64_t kRoom = kTaskX * kGroup;  // results of a task's matrix
static_assert(kFewRows * kWideChannels <= kRoom);
constexpr int64_t kMaxTaskOutputs = 128;  // in a task of the second job

struct Piece {
    const Block* block;
    int64_t first_row;      // position in block->rows
    int64_t num_rows;
    int64_t first_channel;
    int64_t num_channels;
};

// Where a block's activations lie: `row_bytes` apart from `start` on.
struct Room {
    int64_t start;
    int64_t row_bytes;
};

// Outputs of a task of the second job.
struct Span {
    int64_t first, count;
};

// Rows of x as plain matrices take them, and as grouped ones do; a block may have both.
constexpr int kForms = 2;
constexpr int form_of(Format format) { return is_grouped(format) ? 1 : 0; }

// Everything that the tasks of a call share, kept by the calling thread for the next call.
struct Work {
    Inputs inputs[kForms];
    bool is_used[kForms];
    std::vector<Piece> pieces;
    std::vector<Span> spans;
    std::vector<Room> rooms;
    std::vector<int64_t> starts;            // of each block in the lists of rows
    std::vector<uint8_t> hidden;
    std::vector<const uint8_t*> x_rows[kForms];  // of all blocks in turn; null in unused forms
    std::vector<const uint8_t*> hidden_rows;
};

// Size of the next task: a share of what is left, so that threads end nearly together.
int64_t next_size(int64_t left, int64_t unit, int64_t most) {
    const int64_t share = round_up(left / (2 * pool::num_threads()) + 1, unit);
    return std::min(left, std::clamp(share, unit, most));
}

void lay_out(const std::vector<Block>& blocks, Work& work) {
    work.pieces.clear();
    work.rooms.clear();
    work.starts.clear();
    for (auto& rows : work.x_rows) rows.clear();
    work.hidden_rows.clear();
    work.spans.clear();
    int64_t room = 0, channels_left = 0, num_rows = 0;
    for (const Block& block : blocks) channels_left += block.gate.rows;
    for (const Block& block : blocks) {
        const int64_t count = static_cast<int64_t>(block.rows.size());
        const int64_t padded = round_up(block.gate.rows, kGroup);
        const int64_t most = count <= kFewRows ? kWideChannels : kGroup;
        const int64_t row_bytes = input_bytes(block.down.format, padded);
        work.rooms.push_back({room, row_bytes});
        work.starts.push_back(num_rows);
        num_rows += count;
        room += count * row_bytes;
        for (int64_t c = 0; c < block.gate.rows;) {
            const int64_t wide = next_size(channels_left, kGroup, most);
            const int64_t channels = std::min(wide, block.gate.rows - c);
            for (int64_t i = 0; i < count; i += kTaskX)
                work.pieces.push_back({&block, i, std::min(kTaskX, count - i), c, channels});
            c += channels;
            channels_left -= channels;
        }
        for (int form = 0; form < kForms; ++form)
            for (const int32_t row : block.rows)
                work.x_rows[form].push_back(work.is_used[form] ? work.inputs[form].row(row)
                                                               : nullptr);
    }
    if (static_cast<int64_t>(work.hidden.size()) < room)
        work.hidden.resize(static_cast<size_t>(room));
    for (size_t b = 0; b < blocks.size(); ++b)
        for (size_t i = 0; i < blocks[b].rows.size(); ++i)
            work.hidden_rows.push_back(work.hidden.data() + work.rooms[b].start +
                                       static_cast<int64_t>(i) * work.rooms[b].row_bytes);
    const int64_t outputs = blocks.front().down.rows;
    for (int64_t first = 0; first < outputs; first += work.spans.back().count)
        work.spans.push_back({first, next_size(outputs - first, kGroup, kMaxTaskOutputs)});
}

void add_bias(float* rows, int64_t num_rows, int64_t stride, const float* bias, int64_t count) {
    if (!bias) return;
    for (int64_t i = 0; i < num_rows; ++i)
        for (int64_t c = 0; c < count; ++c) rows[i * stride + c] += bias[c];
}

// Some channels for some rows of one block; `x_rows` are its rows in both forms.
void form_hidden(const KernelTable& kernels, const Piece& piece,
                 const std::array<const uint8_t* const*, kForms>& x_rows,
                 const uint8_t* const* hidden_rows) {
    const Block& block = *piece.block;
    const int64_t first = piece.first_channel, channels = piece.num_channels;
    const int64_t stride = round_up(channels, kGroup);
    alignas(64) float gate[kRoom];
    alignas(64) float up[kRoom];
    const auto product = [&](const Weights& weights, const float* bias, float* results) {
        const uint8_t* const* const rows = x_rows[static_cast<size_t>(form_of(weights.format))];
        kernels.dot[static_cast<int>(weights.format)](weights, first, channels, rows,
                                                      piece.num_rows, results, stride);
        add_bias(results, piece.num_rows, stride, bias ? bias + first : nullptr, channels);
    };
    product(block.gate, block.gate_bias, gate);
    if (block.up.data) product(block.up, block.up_bias, up);
    for (int64_t i = 0; i < piece.num_rows; ++i) {
        float* const gate_row = gate + i * stride;
        float* const up_row = up + i * stride;
        for (int64_t c = channels; c < stride; ++c) gate_row[c] = up_row[c] = 0.0f;
        kernels.activate(block.activation, gate_row, up_row, stride);
        for (int64_t c = channels; c < stride; ++c) gate_row[c] = 0.0f;
        uint8_t* const target = const_cast<uint8_t*>(hidden_rows[i]);
        if (is_grouped(block.down.format)) {
            kernels.quantise(gate_row, stride, target + first / kGroup * kXGroupBytes);
        } else {
            float* const floats = reinterpret_cast<float*>(target) + first;
            std::copy(gate_row, gate_row + stride, floats);
        }
    }
}

// Some outputs of one block for all its rows, weighted and added to `out`.
void add_outputs(const KernelTable& kernels, const Block& block, const uint8_t* const* hidden_rows,
                 int64_t first, int64_t count, float* out) {
    alignas(64) float y[kTaskX * kMaxTaskOutputs];
    const int64_t num_rows = static_cast<int64_t>(block.rows.size());
    const KernelTable::Dot dot = kernels.dot[static_cast<int>(block.down.format)];
    for (int64_t start = 0; start < num_rows; start += kTaskX) {
        const int64_t part = std::min(kTaskX, num_rows - start);
        dot(block.down, first, count, hidden_rows + start, part, y, kMaxTaskOutputs);
        add_bias(y, part, kMaxTaskOutputs, block.down_bias ? block.down_bias + first : nullptr,
                 count);
        for (int64_t i = 0; i < part; ++i) {
            const size_t place = static_cast<size_t>(start + i);
            const float scale = block.scales[place];
            float* const target = out + block.rows[place] * block.down.rows + first;
            const float* const row = y + i * kMaxTaskOutputs;
            for (int64_t j = 0; j < count; ++j) target[j] += scale * row[j];
        }
    }
}

}  // namespace

void assign_rows(std::vector<Block>& blocks, const std::vector<int32_t>& numbers,
                 const int32_t* ids, const float* weights, int64_t n, int64_t k) {
    int32_t highest = -1;
    for (const int32_t number : numbers) highest = std::max(highest, number);
    thread_local std::vector<int32_t> block_of;
    block_of.assign(static_cast<size_t>(highest) + 1, -1);
    for (size_t b = 0; b < numbers.size(); ++b)
        block_of[static_cast<size_t>(numbers[b])] = static_cast<int32_t>(b);
    for (int64_t i = 0; i < n; ++i) {
        for (int64_t j = 0; j < k; ++j) {
            const int32_t id = ids[i * k + j];
            const int32_t b = id < 0 || id > highest ? -1 : block_of[static_cast<size_t>(id)];
            if (b < 0) continue;
            blocks[static_cast<size_t>(b)].rows.push_back(static_cast<int32_t>(i));
            blocks[static_cast<size_t>(b)].scales.push_back(weights[i * k + j]);
        }
    }
}

void feed_forward(const std::vector<Block>& blocks, const float* x, int64_t n, float* out) {
    if (blocks.empty()) return;
    thread_local Work work;
    for (const Format each : {Format::F32, Format::Q8G32}) {
        const int form = form_of(each);
        work.is_used[form] = std::any_of(blocks.begin(), blocks.end(), [form](const Block& block) {
            return form_of(block.gate.format) == form ||
                   (block.up.data && form_of(block.up.format) == form);
        });
        if (work.is_used[form])
            work.inputs[form].prepare(each, x, n, blocks.front().gate.columns);
    }
    lay_out(blocks, work);
    if (work.pieces.empty()) return;

    const KernelTable& kernels = table();
    const Block* const first_block = blocks.data();
    const int64_t num_blocks = static_cast<int64_t>(blocks.size());
    const Piece* const pieces = work.pieces.data();
    const int64_t* const starts = work.starts.data();
    const uint8_t* const* const plain_rows = work.x_rows[0].data();
    const uint8_t* const* const grouped_rows = work.x_rows[1].data();
    const uint8_t* const* const hidden_rows = work.hidden_rows.data();

    pool::run(static_cast<int64_t>(work.pieces.size()), [=, &kernels](int64_t index) {
        const Piece& piece = pieces[index];
        const int64_t place = starts[piece.block - first_block] + piece.first_row;
        form_hidden(kernels, piece, {plain_rows + place, grouped_rows + place},
                    hidden_rows + place);
    });

    const Span* const spans = work.spans.data();
    pool::run(static_cast<int64_t>(work.spans.size()), [=, &kernels](int64_t index) {
        const Span& span = spans[index];
        for (int64_t b = 0; b < num_blocks; ++b)
            add_outputs(kernels, first_block[b], hidden_rows + starts[b], span.first, span.count,
                        out);
    });
}

}  // namespace larder
