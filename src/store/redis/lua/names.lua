local call, unpack, pack = redis.call, struct.unpack, struct.pack
local floor, ceil, min, max = math.floor, math.ceil, math.min, math.max
local byte, format = string.byte, string.format
local SPARE = 1000  -- milliseconds that a state outlives its use: clocks are read twice

