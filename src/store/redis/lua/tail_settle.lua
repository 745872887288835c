-- KEYS: a reservation
-- ARGV: what it came to; or '' and the milliseconds that it lasts from now on, to read it only
-- Reply: a text: 'o' and the record that was kept, if it was open (and is settled now); 's' and
--   what it was settled with before; '-' if there is none
local text = call('GET', KEYS[1])
if not text then
  return '-'
end
if byte(text) == 111 then  -- o
  if ARGV[1] == '' then
    call('PEXPIRE', KEYS[1], ARGV[2])
  else
    call('SET', KEYS[1], 's' .. ARGV[1], 'KEEPTTL')
  end
end
return text
