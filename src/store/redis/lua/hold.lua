-- Concurrency, the twin of src/algorithm/concurrency.h: admit iff the units of live holds + cost <=
-- limit.
--
-- An ask: doubles
--   mode, cost, limit, lease in microseconds
--
-- The state is a sorted set: a member "<fence>:<units>" for each hold, by the instant at which its
-- lease ends, and in front of them, at -1, one member
--   "<units in use> <last fence> <shift> <longest lease>"
-- Units in use count holds whose lease has ended and that are still in the set. An end less the
-- shift is an instant in microseconds: a clock that is set back by more than the longest lease
-- moves all of them by one number. A fence is the instant of the grant, or one more than the last
-- if that is larger; the set is kept until the clock has passed the last fence.
--
-- look returns: fits, write, 5, units in use before, the fence and the end of what is charged, the
-- instant at which enough leases have ended or -1, the last end or -1, [units of live holds, last
-- fence, shift, longest lease, added, the member in front or false].
local function hold_head(key)
  local front = call('ZRANGE', key, 0, 0)[1]
  if not front then
    return 0, 0, 0, 0, false
  end
  local used, last, shift, lease = string.match(front, '^(%d+) (%d+) (%d+) (%d+)$')
  if not used then
    return nil
  end
  return tonumber(used), tonumber(last), tonumber(shift), tonumber(lease), front
end

local function hold_units(member)
  return tonumber(string.match(member, ':(%d+)$'))
end

local function text(number)
  return format('%.0f', number)
end

-- Units in use, last fence, shift, longest lease, front, ended units, last end, whether it was cut.
local function hold_load(key, now)
  local used, last, shift, lease, front = hold_head(key)
  if not used then
    return nil
  end
  if not front then
    return 0, 0, 0, 0, false, 0, -1, false
  end
  local cut = false
  local newest = call('ZRANGE', key, -1, -1, 'WITHSCORES')
  local ends = tonumber(newest[2]) - shift
  if ends - now > lease and newest[1] ~= front then
    shift, ends, cut = shift + ends - now - lease, now + lease, true
  end
  local ended = 0
  for _, member in ipairs(call('ZRANGEBYSCORE', key, 0, text(now + shift))) do
    ended = ended + hold_units(member)
  end
  return used, last, shift, lease, front, ended, ends > now and ends or -1, cut
end

local function hold_room(key, now, shift, excess, added, added_end)
  local from, ends = 0, -1
  while true do
    local some = call('ZRANGEBYSCORE', key, '(' .. text(now + shift), '+inf', 'WITHSCORES', 'LIMIT',
      from, 64)
    for i = 1, #some, 2 do
      local at = tonumber(some[i + 1]) - shift
      if added > 0 and at > added_end then
        excess, ends, added = excess - added, added_end, 0
        if excess <= 0 then
          return ends
        end
      end
      excess, ends = excess - hold_units(some[i]), at
      if excess <= 0 then
        return ends
      end
    end
    if #some < 128 then
      return added > 0 and added_end or ends
    end
    from = from + 64
  end
end

local function hold_look(key, a, now)
  local mode, cost, limit, lease = unpack('<dddd', a)
  local used, last, shift, longest, front, ended, ends, cut = hold_load(key, now)
  if not used then
    return nil
  end
  local live = used - ended
  local asked = cost
  if mode == 2 and cost > 0 then
    cost = min(cost, max(limit - live, 0))
  end
  local fits = mode ~= 4 and (asked == 0 or (cost > 0 and live + cost <= limit))
  local added = 0
  local write = (cut or ended > 0) and 1 or 0
  if cost > 0 and mode < 3 and (fits or mode == 1) then
    write = 2
    added = min(cost, 65535)
  end
  local room = -1
  if not fits and mode ~= 4 and (mode == 2 or asked <= limit) then
    local excess = live + added + (mode == 2 and 1 or asked) - limit
    room = hold_room(key, now, shift, excess, added, now + lease)
  end
  return fits, write, 5, live, max(now, last + 1), now + lease, room, ends, live, last, shift,
    max(longest, added > 0 and lease or 0), added, front
end

local function hold_front(key, front, used, last, shift, longest)
  local new = format('%.0f %.0f %.0f %.0f', used, last, shift, longest)
  if new ~= front then
    call('ZADD', key, -1, new)
    if front then  -- after it, since an empty set is no key and has no TTL
      call('ZREM', key, front)
    end
  end
end

local function hold_save(key, now, s, charged)
  local used, last, shift = s[9], s[10], s[11]
  call('ZREMRANGEBYSCORE', key, 0, text(now + shift))
  local keep = max(s[8], last + 1)
  if charged then
    used, last = used + s[13], s[5]
    call('ZADD', key, text(s[6] + shift), format('%.0f:%.0f', last, s[13]))
    keep = max(s[6], last + 1, keep)
  end
  hold_front(key, s[14], used, last, shift, s[12])
  call('PEXPIRE', key, max(ceil((keep - now) / 1000), 0) + SPARE)
end

-- A receipt: doubles fence, units. Ends the hold unless it has ended. Returns its units, and 0.
local function hold_back(key, a, now)
  local fence, units = unpack('<dd', a)
  local used, last, shift, longest, front = hold_head(key)
  if not used then
    return nil
  end
  local member = format('%.0f:%.0f', fence, units)
  local ends = front and call('ZSCORE', key, member)
  if not ends or tonumber(ends) - shift <= now then
    return 0, 0
  end
  call('ZREM', key, member)
  hold_front(key, front, used - units, last, shift, longest)
  return units, 0
end
