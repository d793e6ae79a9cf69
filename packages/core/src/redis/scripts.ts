/**
 * Compare and swap of records, each by itself, on the server's clock. A record's first eight characters are its version.
 *
 * A writer computes with the time that it believes the server has. It is refused when it runs ahead, since it might
 * take a lease that has not lapsed, or so far behind that its leases would be too short.
 *
 * KEYS records; ARGV, five for each: version that is expected ("" = none), time computed with (ms), new version and text,
 * "1" where that replaces only as many bytes at the beginning, expiry (ms since the epoch, "0" = never). Returns the time,
 * and for each record nil or, where nothing was written, what is there.
 *
 * Lua hashes every byte of every string that it makes, which costs more than all else here: so it joins and cuts none.
 */
export const SWAP = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local answers = {tostring(now)}
for i, key in ipairs(KEYS) do
  local version, computed, text, beginning, expiry = unpack(ARGV, i * 5 - 4, i * 5)
  local lag = now - tonumber(computed)
  if redis.call('GETRANGE', key, 0, 7) ~= version or lag < -100 or lag > 5000 then
    answers[i + 1] = redis.call('GET', key) or ''
  else
    if beginning == '1' then
      redis.call('SETRANGE', key, 0, text)
    elseif expiry == '0' then
      redis.call('SET', key, text)
    else
      redis.call('SET', key, text, 'PXAT', expiry)
    end
    answers[i + 1] = false
  end
end
return answers
`;

/** The time and a record: { time, value or "" }. KEYS[1] record. */
export const READ = `
local time = redis.call('TIME')
return {tostring(time[1] * 1000 + math.floor(time[2] / 1000)), redis.call('GET', KEYS[1]) or ''}
`;

/**
 * Claims a reference for a record, for as long as the record lives at least; returns whose it is.
 *
 * KEYS[1] reference, which keeps "expiry owner"; ARGV: owner, signed timestamp (ms), how long it is kept (ms), what is
 * added to the server's time (ms).
 */
export const CLAIM_REFERENCE = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000) + tonumber(ARGV[4])
local expiry, owner = string.match(redis.call('GET', KEYS[1]) or '', '^(%d+) (.*)$')
expiry = tonumber(expiry or 0)
if expiry > now and owner ~= ARGV[1] then return owner end
if owner ~= ARGV[1] then expiry = 0 end
expiry = math.max(expiry, math.max(now, tonumber(ARGV[2])) + tonumber(ARGV[3]))
local value = string.format('%.0f %s', expiry, ARGV[1])
redis.call('SET', KEYS[1], value, 'PXAT', string.format('%.0f', expiry - tonumber(ARGV[4])))
return ARGV[1]
`;

/** The index of held slots. KEYS[1] index; ARGV: score, eventId. */
export const ADD_HELD = `return redis.call('ZADD', KEYS[1], ARGV[1], ARGV[2])`;
/** KEYS[1] index; ARGV: eventId. */
export const REMOVE_HELD = `return redis.call('ZREM', KEYS[1], ARGV[1])`;
/** KEYS[1] index. */
export const COUNT_HELD = `return redis.call('ZCARD', KEYS[1])`;
/** A page of the index in order of time. KEYS[1] index; ARGV: offset, length. */
export const PAGE_HELD = `return redis.call('ZRANGE', KEYS[1], ARGV[1], ARGV[1] + ARGV[2] - 1)`;
