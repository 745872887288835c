-- Token bucket, leaky bucket, queue: GCRA, the twin of src/algorithm/gcra.h.
--
-- An ask: doubles, little end first
--   mode, increment, tolerance, code: if there is a code, and most is twice the tolerance
-- or
--   mode, increment, tolerance, most, interval, code
--   and, if the interval is no whole number of microseconds, the ticks beyond these:
--   subdivision, increment, tolerance, most, interval
-- increment = cost * interval; tolerance = burst * interval; most: the largest debt that is kept.
-- code: the interval's short name, or 0.
--
-- The state is one instant, the TAT, as (microseconds, ticks); a microsecond has `subdivision`
-- ticks. In Redis:
--   <16 digits: microseconds><3 digits: code>, which Redis keeps as an integer in 16 bytes; code is
--     m + 100 k for an interval of m * 10^k microseconds. 2.7e15 more microseconds, or 5.4e15: the
--     key lives for the rest of the even, or odd, phase of 2^26 microseconds in which its end was
--     set, and for the next one (bucket_fast.lua)
--   or \1 and a record: microseconds:7, ticks:5, subdivision:5, interval:double and, once something
--     was given back, moved:7, the microseconds by which give-backs have pulled it forward.
-- Either names the interval under which it was written, so that a changed limit, or a node with
-- another version of the rules, finds the units that are owed: they are the same units after it.
--
-- All numbers are whole and below 2^53, where doubles are exact: instants up to the year 2255, and
-- no debt is longer than 200 years.
--
-- look returns: fits, write, 3, microseconds, ticks, moved, [microseconds, ticks after the charge,
-- interval, subdivision, code].
local function bucket_args(a)
  if #a == 32 then
    local mode, inc, tol, code = unpack('<dddd', a)
    return mode, inc, 0, tol, 0, 2 * tol, 0, code % 100 * 10 ^ floor(code / 100), 0, 1, code
  end
  local mode, inc, tol, most, per, code = unpack('<dddddd', a)
  if #a == 48 then
    return mode, inc, 0, tol, 0, most, 0, per, 0, 1, code
  end
  local sub, inc_t, tol_t, most_t, per_t = unpack('<ddddd', a, 49)
  return mode, inc, inc_t, tol, tol_t, most, most_t, per, per_t, sub, code
end

-- The state of a key as of now under an interval: microseconds, ticks, moved, whether it was cut.
local function bucket_load(key, now, per, sub, code, most, most_t)
  local v = call('GET', key)
  if not v then
    return now, 0, 0, false
  end
  local tat, ticks, moved = 0, 0, 0
  local old, old_sub = 0, 1
  if #v == 19 then
    tat = tonumber(string.sub(v, 1, 16))
    tat = tat >= 6.4e15 and tat - 5.4e15 or tat >= 3.7e15 and tat - 2.7e15 or tat
    local name = tonumber(string.sub(v, 17))
    old = name == code and per or name % 100 * 10 ^ floor(name / 100)
  elseif byte(v) == 1 then
    local _
    _, tat, ticks, old_sub, old = unpack('<BI7I5I5d', v)
    if #v == 33 then
      moved = unpack('<I7', v, 27)
    end
  else
    return nil
  end
  if tat < now then
    return now, 0, 0, false
  end
  local cut = false
  if old ~= per or old_sub ~= sub then
    -- The same number of units, rounded down to the microsecond: a raise never denies.
    tat, ticks, moved, cut = now + floor((tat - now + ticks / old_sub) * (per / old)), 0, 0, true
  end
  if tat - now > most or (tat - now == most and ticks > most_t) then
    -- The clock was set back: nobody waits longer than for the largest debt.
    return now + most, most_t, 0, true
  end
  return tat, ticks, moved, cut
end

-- n intervals: microseconds and ticks. Exact: n is at most 2^32 and split into halves of 16 bits,
-- ticks stay below 2^36.
local function bucket_times(n, per, per_t, sub)
  local high = floor(n / 65536)
  local low = n - high * 65536
  local t = high * per_t
  local whole = floor(t / sub)
  t = (t - whole * sub) * 65536
  local more = floor(t / sub)
  t = t - more * sub + low * per_t
  local rest = floor(t / sub)
  return n * per + whole * 65536 + more + rest, t - rest * sub
end

local function bucket_look(key, a, now)
  local mode, inc, inc_t, tol, tol_t, most, most_t, per, per_t, sub, code = bucket_args(a)
  local name = sub == 1 and per or per + per_t / sub
  local tat, ticks, moved, cut = bucket_load(key, now, name, sub, code, most, most_t)
  if not tat then
    return nil
  end
  if mode == 2 and inc + inc_t > 0 then  -- up to: as many intervals as fit
    local room, room_t = tol - (tat - now), tol_t - ticks
    if room_t < 0 then
      room, room_t = room - 1, room_t + sub
    end
    local use, use_t = 0, 0
    if room >= 0 then
      local n = floor((room + room_t / sub) / name)  -- right, or off by one
      use, use_t = bucket_times(n, per, per_t, sub)
      if use > room or (use == room and use_t > room_t) then
        use, use_t = bucket_times(n - 1, per, per_t, sub)
      else
        local one, one_t = bucket_times(n + 1, per, per_t, sub)
        if one < room or (one == room and one_t <= room_t) then
          use, use_t = one, one_t
        end
      end
    end
    if use < inc or (use == inc and use_t < inc_t) then
      inc, inc_t = use, use_t
    end
    if inc + inc_t == 0 then
      return false, cut and 1 or 0, 3, tat, ticks, moved, tat, ticks, name, sub, code
    end
  end
  local after, after_t = tat + inc, ticks + inc_t
  if after_t >= sub then
    after, after_t = after + 1, after_t - sub
  end
  local debt = after - now
  local fits = mode ~= 4 and
    (debt < tol or (debt == tol and after_t <= tol_t) or inc + inc_t == 0)
  local write = cut and 1 or 0
  if inc + inc_t > 0 and mode < 3 and (fits or mode == 1) then
    write = 2
    if debt > most or (debt == most and after_t > most_t) then
      after, after_t = now + most, most_t
    end
  end
  return fits, write, 3, tat, ticks, moved, after, after_t, name, sub, code
end

local function bucket_put(key, now, tat, ticks, moved, name, sub, code)
  local v
  if ticks == 0 and code > 0 and moved == 0 and tat >= 1e15 and tat < 3.7e15 then
    v = format('%.0f%03d', tat, code)
  elseif moved > 0 then
    v = pack('<BI7I5I5dI7', 1, tat, ticks, sub, name, moved)
  else
    v = pack('<BI7I5I5d', 1, tat, ticks, sub, name)
  end
  call('SET', key, v, 'PX', ceil((tat - now) / 1000) + SPARE)
end

local function bucket_save(key, now, s, charged)
  if charged then
    bucket_put(key, now, s[7], s[8], s[6], s[9], s[10], s[11])
  else
    bucket_put(key, now, s[4], s[5], s[6], s[9], s[10], s[11])
  end
end

-- A receipt: doubles
--   paid, paid ticks, most, most ticks, interval, interval ticks, subdivision, code: as charged
--   mark, mark ticks: the TAT right after the charge
--   moved: the state's right before it
--   undelayed, undelayed ticks: queues; -1: none
-- Returns the microseconds and ticks by which the TAT went back.
local function bucket_back(key, a, now)
  local paid, paid_t, most, most_t, per, per_t, sub, code, mark, mark_t, before, free, free_t =
    unpack('<ddddddddddddd', a)
  local name = sub == 1 and per or per + per_t / sub
  local tat, ticks, moved = bucket_load(key, now, name, sub, code, most, most_t)
  if not tat then
    return nil
  end
  local debt, debt_t = tat - now, ticks
  local reach, reach_t = mark - now, mark_t
  if reach < 0 then
    reach, reach_t = 0, 0
  end
  local since = moved > before and moved - before or 0
  if free >= 0 and (debt > free or (debt == free and debt_t > free_t)) then
    -- Somebody waits: only the last place is free again (gcra_queue.h), and nothing moved it.
    if reach ~= debt or reach_t ~= debt_t then
      return 0, 0
    end
    since = 0
  end
  reach = reach - since
  if reach < 0 then
    reach, reach_t = 0, 0
  end
  if paid < reach or (paid == reach and paid_t < reach_t) then
    reach, reach_t = paid, paid_t
  end
  if debt < reach or (debt == reach and debt_t < reach_t) then
    reach, reach_t = debt, debt_t
  end
  if reach + reach_t == 0 then
    return 0, 0
  end
  local left, left_t = debt - reach, debt_t - reach_t
  if left_t < 0 then
    left, left_t = left - 1, left_t + sub
  end
  moved = moved + reach + (reach_t > 0 and 1 or 0)
  bucket_put(key, now, now + left, left_t, moved, name, sub, code)
  return reach, reach_t
end
