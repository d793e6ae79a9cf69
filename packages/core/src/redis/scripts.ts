/*
 * What is done in Redis, each in one atomic step. Every script answers with the server's time (ms since the epoch) before
 * anything else, and touches only the keys that it is given. Lua copies every text that it is handed, so that scripts join
 * and cut none.
 */

const NOW = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
`;

/**
 * Writes each record that still has the version it was computed from, with its places in the sorted sets of its shard. Those
 * come first: no record is ever there without them, and an end, which leaves sets only, is written by a full Redis too.
 *
 * KEYS, for each record: its own, then a sorted set for each move. ARGV, for each record: how the text begins that is
 * expected ("": there is none), time computed with (ms), new text, expiry (ms since the epoch, "": none), number of moves;
 * then for each move a member and its score ("": it leaves the set; "~" and a time: the set goes when the last of its members
 * does). Answers nil for each record that was written, and the
 * text that is there, or "", for each that was not.
 */
export const SWAP: string = `${NOW}
local answers = {now}
local key, arg = 1, 1
while key <= #KEYS do
  local record = KEYS[key]
  local expected, at, text, expiry, moves = unpack(ARGV, arg, arg + 4)
  local lag = now - at
  if lag < 0 or lag > 5000 or redis.call('GETRANGE', record, 0, math.max(#expected - 1, 0)) ~= expected then
    answers[#answers + 1] = redis.call('GET', record) or ''
  else
    for move = 1, moves do
      local member, score = ARGV[arg + 3 + move * 2], ARGV[arg + 4 + move * 2]
      if score == '' then
        redis.call('ZREM', KEYS[key + move], member)
      elseif string.byte(score) == 126 then
        local set = KEYS[key + move]
        redis.call('ZADD', set, string.sub(score, 2), member)
        local last = redis.call('ZRANGE', set, -1, -1, 'WITHSCORES')[2]
        if last == 'inf' then redis.call('PERSIST', set) else redis.call('PEXPIREAT', set, last) end
      else
        redis.call('ZADD', KEYS[key + move], score, member)
      end
    end
    if expiry == '' then
      redis.call('SET', record, text)
    else
      redis.call('SET', record, text, 'PXAT', expiry)
    end
    answers[#answers + 1] = false
  end
  key = key + 1 + moves
  arg = arg + 5 + moves * 2
end
return answers
`;

/** The texts of records. KEYS records; answers a text or nil for each. */
export const READ: string = `${NOW}
local answers = redis.call('MGET', unpack(KEYS))
table.insert(answers, 1, now)
return answers
`;

/**
 * Takes what has been due for the longest time, and hides it.
 *
 * KEYS sorted sets of due records; ARGV: how many at most, hidden for how long (ms). Answers how many are left that are due
 * (in how many of the sets any are left, where some were to be taken: counting costs more than taking),
 * since when the first of them is ("": none), when the next one is due that is not due yet ("": none), and for each record
 * that was taken its member and since when it was due.
 */
export const TAKE_DUE: string = `${NOW}
local limit, hiddenUntil = tonumber(ARGV[1]), now + math.max(ARGV[2], 1)
local members, times = {}, {}
local function look(i)
  local first = redis.call('ZRANGE', KEYS[i], 0, 0, 'WITHSCORES')
  members[i], times[i] = first[1], tonumber(first[2]) or math.huge
end
for i = 1, #KEYS do look(i) end
local answers = {now, 0, '', ''}
for _ = 1, limit do
  local oldest = 1
  for i = 2, #KEYS do
    if times[i] < times[oldest] then oldest = i end
  end
  if times[oldest] > now then break end
  answers[#answers + 1] = members[oldest]
  answers[#answers + 1] = times[oldest]
  redis.call('ZADD', KEYS[oldest], hiddenUntil, members[oldest])
  look(oldest)
end
local left, oldest, following = 0, math.huge, math.huge
for i = 1, #KEYS do
  local later = times[i]
  if later <= now then
    oldest = math.min(oldest, later)
    if limit > 0 then
      left = left + 1
    else
      left = left + redis.call('ZCOUNT', KEYS[i], '-inf', now)
      later = tonumber(redis.call('ZRANGEBYSCORE', KEYS[i], '(' .. now, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)[2]) or math.huge
    end
  end
  if later > now then following = math.min(following, later) end
end
answers[2] = left
if oldest < math.huge then answers[3] = oldest end
if following < math.huge then answers[4] = following end
return answers
`;

/**
 * Some names of keys. KEYS[1] any key on the node that is asked; ARGV: where to go on ("0": at the beginning), a pattern, how
 * many to look at. Answers where the next call goes on ("0": it was the last), and the names.
 */
export const SCAN: string = `${NOW}
local found = redis.call('SCAN', ARGV[1], 'MATCH', ARGV[2], 'COUNT', ARGV[3])
return {now, found[1], found[2]}
`;

/** KEYS sorted sets; answers the size of each. */
export const SIZES: string = `${NOW}
local answers = {now}
for i, key in ipairs(KEYS) do answers[i + 1] = redis.call('ZCARD', key) end
return answers
`;

/**
 * Members between two bounds, in their order. KEYS sorted sets; ARGV: the least, the greatest, how many of each set at most, and
 * which end comes first. Answers a list for each.
 */
export const MEMBERS: string = `${NOW}
local answers = {now}
local command, from, to = 'ZRANGEBYLEX', ARGV[1], ARGV[2]
if ARGV[4] == 'newest' then
  command, from, to = 'ZREVRANGEBYLEX', to, from
end
for i, key in ipairs(KEYS) do
  answers[i + 1] = redis.call(command, key, from, to, 'LIMIT', 0, ARGV[3])
end
return answers
`;

/** All members of sorted sets, at most so many of each. KEYS sorted sets; ARGV: how many. Answers a list for each. */
export const ALL_MEMBERS: string = `${NOW}
local answers = {now}
for i, key in ipairs(KEYS) do answers[i + 1] = redis.call('ZRANGE', key, 0, ARGV[1] - 1) end
return answers
`;

/** Takes members out of a sorted set whose records are gone. KEYS: the set, records; ARGV: a member for each. Answers how many. */
export const PRUNE: string = `${NOW}
local gone = 0
for i = 2, #KEYS do
  if redis.call('EXISTS', KEYS[i]) == 0 then gone = gone + redis.call('ZREM', KEYS[1], ARGV[i - 1]) end
end
return {now, gone}
`;

/** Says of the data that it is searchable from now on, if nothing says so yet. KEYS[1]. */
export const MARK: string = `${NOW}
redis.call('SET', KEYS[1], now, 'NX')
return {now}
`;

/**
 * KEYS[1] what names the data; ARGV[1] its value, if it has none yet ("": it gets none). Answers the value that it has, or "",
 * and what the server does when its memory is full ("" where it does not say).
 */
export const IDENTIFY: string = `${NOW}
local identity = redis.call('GET', KEYS[1])
if not identity then
  identity = ARGV[1]
  if identity ~= '' then redis.call('SET', KEYS[1], identity) end
end
local info = redis.pcall('INFO', 'memory')
local policy = type(info) == 'string' and string.match(info, 'maxmemory_policy:([%w-]+)') or ''
return {now, identity, policy}
`;

/** Writes as a swap does, and leaves nothing that lasts. KEYS: a text, a sorted set. */
export const PROBE: string = `${NOW}
redis.call('SET', KEYS[1], '', 'PXAT', now + 1000)
redis.call('ZADD', KEYS[2], 0, '')
redis.call('ZREM', KEYS[2], '')
return {now}
`;

/** Puts hints on a short list that nobody has to read. KEYS[1] list; ARGV: how many, how many it has at most, how long it lasts (ms). */
export const HINT: string = `${NOW}
for _ = 1, ARGV[1] do redis.call('RPUSH', KEYS[1], now) end
redis.call('LTRIM', KEYS[1], -ARGV[2], -1)
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return {now}
`;

/**
 * Whether records are there, and a write behind them that replicas can be waited for with. KEYS: what is written, then
 * records; ARGV: how the text of each begins. Answers 2 for a record that begins so, 1 for another one, 0 for none.
 */
export const CONFIRM: string = `${NOW}
local answers = {now}
redis.call('SET', KEYS[1], now)
for i, expected in ipairs(ARGV) do
  if redis.call('GETRANGE', KEYS[i + 1], 0, #expected - 1) == expected then
    answers[i + 1] = 2
  else
    answers[i + 1] = redis.call('EXISTS', KEYS[i + 1])
  end
end
return answers
`;

/** The server's own report. KEYS[1] on the node that is asked. */
export const REPORT: string = `${NOW}
return {now, redis.call('INFO')}
`;
