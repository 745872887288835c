-- What was answered under an id, as text. The first number of a repeated answer is 2 more.
local function recall(key)
  local text = call('GET', key)
  if not text then
    return nil
  end
  local reply = {}
  for number in string.gmatch(text, '%-?%d+') do
    reply[#reply + 1] = tonumber(number)
  end
  reply[1] = reply[1] + 2
  return reply
end

local function remember(key, reply, milliseconds)
  local texts = {}
  for i = 1, #reply do
    texts[i] = format('%.0f', reply[i])
  end
  call('SET', key, table.concat(texts, ' '), 'PX', milliseconds)
end

