"""The numbers that the extension gives the formats of weights."""

from runtime.protocol.values import WeightFormat

FORMAT_CODES = {
    WeightFormat.F32: 0,
    WeightFormat.F16: 1,
    WeightFormat.BF16: 2,
    WeightFormat.Q8_G32: 3,
    WeightFormat.Q4_G32: 4,
    WeightFormat.MXFP4: 5,
    WeightFormat.Q4A_G32: 6,
    WeightFormat.Q6_G32: 7,
    WeightFormat.Q3_G16: 8,
    WeightFormat.Q2_G16: 9,
    WeightFormat.Q4K_G32: 10,
    WeightFormat.Q6K_G16: 11,
    WeightFormat.Q5K_G32: 12,
    WeightFormat.Q3K_G16: 13,
    WeightFormat.Q2K_G16: 14,
}
