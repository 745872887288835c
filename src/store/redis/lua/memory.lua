-- What was answered under an id: numbers as text, and behind them the claim of who charged, in
-- letters, for as long as nobody else was told that answer: till then it can be undone
-- (tail_give_back.lua). A claim with a dot before it asks for the record's sake and tells nobody.
-- The first number of a repeated answer is 2 more.
local function recall(key, claim)
  local text = call('GET', key)
  if not text then
    return nil
  end
  local owner = string.match(text, '%l+$')
  if owner and owner ~= claim and byte(claim or '') ~= 46 then
    call('SET', key, string.sub(text, 1, -2 - #owner), 'KEEPTTL')
  end
  local reply = {}
  for number in string.gmatch(text, '%-?%d+') do
    reply[#reply + 1] = tonumber(number)
  end
  reply[1] = reply[1] + 2
  return reply
end

local function remember(key, reply, milliseconds, claim)
  local texts = {}
  for i = 1, #reply do
    texts[i] = format('%.0f', reply[i])
  end
  texts[#texts + 1] = claim and string.match(claim, '%l+')
  call('SET', key, table.concat(texts, ' '), 'PX', milliseconds)
end

