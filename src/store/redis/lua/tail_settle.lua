-- KEYS: a reservation
-- ARGV: what it came to, or '' to read it and let it last; the milliseconds that it lasts from now
--   on, if it is read only or is not there; its record, if whoever asks has a copy and does not
--   know whether it was written: then it is written now, so that only this one counts
-- Reply: a text: the milliseconds that it lasts yet, a blank, and 'o' with the record if it was
--   open (and is settled now); 's' with what it was settled with before, a blank and the record; or
--   '-' alone if there is none. The record is told again, since an answer may be lost: what follows
--   from it is done under ids (tail_give_back.lua), and so once.
local text, left = call('GET', KEYS[1]), call('PTTL', KEYS[1])
if not text then
  text, left = ARGV[3], tonumber(ARGV[2])
end
if not text then
  return '-'
end
if byte(text) == 111 then  -- o
  local kept = text
  if ARGV[1] == '' then
    left = tonumber(ARGV[2])
  else
    kept = 's' .. ARGV[1] .. ' ' .. string.sub(text, 2)
  end
  call('SET', KEYS[1], kept, 'PX', format('%.0f', max(left, 1)))
end
return format('%.0f', max(left, 1)) .. ' ' .. text
