// Gated feed-forward blocks (experts) on the rows that chose them.
//
// Two jobs with a barrier between them. The first forms silu(gate x) * up x for chunks of channels
// of every block. A task of the second owns some outputs for all rows and goes through the blocks
// in their order, so that every row is summed in that order whichever thread does it.
#include <algorithm>
#include <vector>

#include "ops.h"
#include "pool.h"

namespace larder {
namespace {

constexpr int64_t kTaskChannels = 32;
constexpr int64_t kTaskX = 48;

struct Piece {
    const Block* block;
    int64_t first_row;      // position in block->rows
    int64_t num_rows;
    int64_t first_channel;
};

// Where a block's activations start and how far apart its rows are.
struct Room {
    int64_t start;
    int64_t stride;
};

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

void feed_forward(const std::vector<Block>& blocks, const float* x, float* out) {
    thread_local std::vector<Piece> pieces;
    thread_local std::vector<Room> rooms;
    thread_local std::vector<float> activations;
    thread_local std::vector<const float*> pointers;  // x rows of all blocks, then activation rows
    pieces.clear();
    rooms.clear();
    pointers.clear();
    int64_t room = 0;
    for (const Block& block : blocks) {
        const int64_t count = static_cast<int64_t>(block.rows.size());
        const int64_t stride = round_up(block.gate.rows, kTaskChannels);
        rooms.push_back({room, stride});
        room += count * stride;
        for (int64_t c = 0; c < block.gate.rows; c += kTaskChannels)
            for (int64_t i = 0; i < count; i += kTaskX)
                pieces.push_back({&block, i, std::min(kTaskX, count - i), c});
        for (const int32_t row : block.rows) pointers.push_back(x + row * block.gate.columns);
    }
    if (pieces.empty()) return;
    if (static_cast<int64_t>(activations.size()) < room)
        activations.resize(static_cast<size_t>(room));
    const int64_t total = static_cast<int64_t>(pointers.size());
    for (size_t b = 0; b < blocks.size(); ++b)
        for (size_t i = 0; i < blocks[b].rows.size(); ++i)
            pointers.push_back(activations.data() + rooms[b].start +
                               static_cast<int64_t>(i) * rooms[b].stride);

    const KernelTable& kernels = table();
    const Block* const first_block = blocks.data();
    const size_t num_blocks = blocks.size();
    const Piece* const piece_list = pieces.data();
    const Room* const room_list = rooms.data();
    const float* const* const x_rows = pointers.data();
    const float* const* const hidden_rows = pointers.data() + total;
    float* const hidden = activations.data();
    std::vector<int64_t> starts(num_blocks);  // of each block in the lists of pointers
    for (size_t b = 1; b < num_blocks; ++b)
        starts[b] = starts[b - 1] + static_cast<int64_t>(blocks[b - 1].rows.size());
    const int64_t* const start_list = starts.data();

    pool::run(static_cast<int64_t>(pieces.size()), [=, &kernels](int64_t index) {
        const Piece& piece = piece_list[index];
        const Block& block = *piece.block;
        const int64_t b = piece.block - first_block;
        const Room& place = room_list[b];
        const int64_t channels = std::min(kTaskChannels, block.gate.rows - piece.first_channel);
        const float* const* const rows = x_rows + start_list[b] + piece.first_row;
        float* const gate =
            hidden + place.start + piece.first_row * place.stride + piece.first_channel;
        float up[kTaskX * kTaskChannels];
        const int format = static_cast<int>(block.gate.format);
        kernels.dot[format](block.gate, piece.first_channel, channels, rows, piece.num_rows, gate,
                            place.stride);
        kernels.dot[format](block.up, piece.first_channel, channels, rows, piece.num_rows, up,
                            kTaskChannels);
        for (int64_t i = 0; i < piece.num_rows; ++i) {
            float* const gate_row = gate + i * place.stride;
            float* const up_row = up + i * kTaskChannels;
            for (int64_t c = channels; c < kTaskChannels; ++c) gate_row[c] = up_row[c] = 0.0f;
            kernels.activate(gate_row, up_row, kTaskChannels);
        }
    });

    const int64_t outputs = blocks.front().down.rows;
    const int64_t share = round_up(outputs / (4 * pool::num_threads()), kRowBlock);
    const int64_t task_outputs = std::clamp<int64_t>(share, kRowBlock, 64);
    pool::run((outputs + task_outputs - 1) / task_outputs, [=, &kernels](int64_t index) {
        const int64_t first = index * task_outputs;
        const int64_t count = std::min(task_outputs, outputs - first);
        float y[kTaskX * 64];
        for (size_t b = 0; b < num_blocks; ++b) {
            const Block& block = first_block[b];
            const int64_t num_rows = static_cast<int64_t>(block.rows.size());
            const KernelTable::Dot dot = kernels.dot[static_cast<int>(block.down.format)];
            for (int64_t start = 0; start < num_rows; start += kTaskX) {
                const int64_t part = std::min(kTaskX, num_rows - start);
                dot(block.down, first, count, hidden_rows + start_list[b] + start, part, y, 64);
                for (int64_t i = 0; i < part; ++i) {
                    const size_t place = static_cast<size_t>(start + i);
                    const float scale = block.scales[place];
                    float* const target = out + block.rows[place] * outputs + first;
                    for (int64_t j = 0; j < count; ++j) target[j] += scale * y[i * 64 + j];
                }
            }
        }
    });
}

}  // namespace larder
