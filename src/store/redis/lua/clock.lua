-- Redis's own time in microseconds, unless a test says which.
local function clock(given)
  if given and given ~= '0' then
    return tonumber(given)
  end
  local t = call('TIME')
  return t[1] * 1000000 + t[2]
end

local UNKNOWN = 'WEIRSTATE the key holds a state that this version of weir does not know'

