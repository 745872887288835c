-- weir @WEIR_SCRIPT@: @WEIR_ABOUT@
--
-- Numbers in arguments are doubles, little end first, packed into one text; all of them are whole.
-- Whole numbers below 2^53 are exact in Lua, and so are their sums, differences and quotients
-- rounded down while they stay there; those that are written out go through %.0f or struct.pack,
-- never through tostring, which keeps 14 digits.
--
-- mode: 0 admit, 1 count always, 2 take up to, 3 dry run, 4 never fits (only look). Cost 0 looks.
local call, unpack, pack = redis.call, struct.unpack, struct.pack
local floor, ceil, min, max = math.floor, math.ceil, math.min, math.max
local byte, format = string.byte, string.format
local SPARE = 1000  -- milliseconds that a state outlives its use: clocks are read twice

