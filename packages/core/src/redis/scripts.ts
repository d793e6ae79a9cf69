/*
 * The Lua scripts. Each one is an atomic step in Redis. Every script returns the server's time (ms since the epoch) first, and
 * touches only the keys that it is given. Lua copies every text that it handles, so the scripts neither join nor cut texts.
 *
 * A Redis that is full (`maxmemory`) refuses commands that may need room, unless the script has already written something. So a
 * script that has to succeed in a full Redis begins with a write that needs none, such as PERSIST or ZREM. Redis 6.2 and later
 * behave so; the flag `allow-oom` of Redis 7 would be refused by earlier ones.
 */

const NOW_LUA = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
`;

/**
 * Writes each record that still has the version that the write was computed from, and its entries in the sorted sets of its
 * shard. The sets are written first, so no record ever exists without its entries.
 *
 * A full Redis takes no new events, but all other writes: stored events are still begun, repeated, held and ended, until there is
 * room again. So the writes that add an event come first, behind a command that changes nothing and asks for room.
 *
 * KEYS, for each record: its own key, then a sorted set for each move. ARGV, for each record: the expected beginning of the
 * stored text ("" if there must be none), the time of the computation (ms), the new text, the expiry (ms since the epoch, ""
 * for none), "1" if the write adds an event, and the number of moves. For each move, a member and its score follow. The score
 * "" removes the member from the set. Returns nil for each record that was written, 0 for one for which there is no room, and
 * for each other one the stored text, or "".
 */
export const SWAP_SCRIPT: string = `${NOW_LUA}
local answers = {now}
local hasRoom
local function write(key, arg)
  local record = KEYS[key]
  local expected, at, text, expiry, adds, moves = unpack(ARGV, arg, arg + 5)
  local lag = now - at
  if lag < 0 or lag > 5000 or redis.call('GETRANGE', record, 0, math.max(#expected - 1, 0)) ~= expected then
    return redis.call('GET', record) or ''
  end
  if adds == '' then
    redis.call('PERSIST', record)
  elseif hasRoom == nil then
    local refusal = redis.pcall('SETRANGE', record, 0, '')
    hasRoom = type(refusal) ~= 'table'
    if not hasRoom and not string.find(refusal.err, 'OOM', 1, true) then error(refusal) end
  end
  if adds ~= '' and not hasRoom then return 0 end
  for move = 1, moves do
    local member, score = ARGV[arg + 4 + move * 2], ARGV[arg + 5 + move * 2]
    if score == '' then
      redis.call('ZREM', KEYS[key + move], member)
    else
      redis.call('ZADD', KEYS[key + move], score, member)
    end
  end
  if expiry == '' then
    redis.call('SET', record, text)
  else
    redis.call('SET', record, text, 'PXAT', expiry)
  end
  return false
end
for _, isFirst in ipairs({true, false}) do
  local key, arg, answer = 1, 1, 2
  while key <= #KEYS do
    local moves = ARGV[arg + 5]
    if (ARGV[arg + 4] ~= '') == isFirst then answers[answer] = write(key, arg) end
    key = key + 1 + moves
    arg = arg + 6 + moves * 2
    answer = answer + 1
  end
end
return answers
`;

/** Reads records. KEYS: the records. Returns a text or nil for each. */
export const READ_SCRIPT: string = `${NOW_LUA}
local answers = redis.call('MGET', unpack(KEYS))
table.insert(answers, 1, now)
return answers
`;

/**
 * Takes the records of each lane that have been due for the longest time, and hides them.
 *
 * KEYS: the sorted sets of due records, those of the usual lane in the first half, and those of the patient one in the
 * second. ARGV: how many records of each lane to take at most, and for how long to hide them (ms). Returns how many due
 * records are left in each lane. If some were to be taken, this is only the number of sets in which some are left,
 * because counting costs more than taking. Then: since when the first of these in each lane has been due ("" if there
 * is none), when the next record falls due that is not due yet ("" if there is none), and for each record that was
 * taken, its member and since when it was due.
 */
export const TAKE_DUE_SCRIPT: string = `${NOW_LUA}
local hiddenUntil = now + math.max(ARGV[3], 1)
local takes = ARGV[1] + ARGV[2] > 0
local answers = {now, 0, 0, '', '', ''}
local following = math.huge
local function take(from, to, limit)
  -- A set without members does not exist. Mostly nobody waits in the patient lane.
  if redis.call('EXISTS', unpack(KEYS, from, to)) == 0 then return 0, '' end
  local members, times = {}, {}
  local function look(i)
    local first = redis.call('ZRANGE', KEYS[i], 0, 0, 'WITHSCORES')
    members[i], times[i] = first[1], tonumber(first[2]) or math.huge
  end
  for i = from, to do look(i) end
  for _ = 1, limit do
    local oldest = from
    for i = from + 1, to do
      if times[i] < times[oldest] then oldest = i end
    end
    if times[oldest] > now then break end
    answers[#answers + 1] = members[oldest]
    answers[#answers + 1] = times[oldest]
    redis.call('ZREM', KEYS[oldest], members[oldest])
    redis.call('ZADD', KEYS[oldest], hiddenUntil, members[oldest])
    look(oldest)
  end
  local left, earliest = 0, math.huge
  for i = from, to do
    local later = times[i]
    if later <= now then
      earliest = math.min(earliest, later)
      if takes then
        left = left + 1
      else
        left = left + redis.call('ZCOUNT', KEYS[i], '-inf', now)
        later = tonumber(redis.call('ZRANGEBYSCORE', KEYS[i], '(' .. now, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)[2]) or math.huge
      end
    end
    if later > now then following = math.min(following, later) end
  end
  return left, earliest < math.huge and earliest or ''
end
answers[2], answers[4] = take(1, #KEYS / 2, ARGV[1])
answers[3], answers[5] = take(#KEYS / 2 + 1, #KEYS, ARGV[2])
if following < math.huge then answers[6] = following end
return answers
`;

/**
 * Returns some names of keys. KEYS[1]: any key on the node that is asked. ARGV: where to continue ("0" for the beginning), a
 * pattern, and how many keys to look at. Returns where the next call continues ("0" if this was the last), and the names.
 */
export const SCAN_SCRIPT: string = `${NOW_LUA}
local found = redis.call('SCAN', ARGV[1], 'MATCH', ARGV[2], 'COUNT', ARGV[3])
return {now, found[1], found[2]}
`;

/** Returns the size of each sorted set. KEYS: the sorted sets. */
export const SIZES_SCRIPT: string = `${NOW_LUA}
local answers = {now}
for i, key in ipairs(KEYS) do answers[i + 1] = redis.call('ZCARD', key) end
return answers
`;

/**
 * Returns members between two bounds, in their order. KEYS: the sorted sets. ARGV: the lowest and the highest member, how many
 * to return of each set at most, and which end comes first. Returns a list for each set.
 */
export const MEMBERS_SCRIPT: string = `${NOW_LUA}
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

/** Replaces a text. KEYS[1]: the text. ARGV[1]: the new one. */
export const WRITE_SCRIPT: string = `${NOW_LUA}
redis.call('SET', KEYS[1], ARGV[1])
return {now}
`;

/**
 * Counts known records that are gone, or are missing in a sorted set although their version is the same. KEYS, for each record:
 * its own key, then the sorted sets. ARGV, for each record: the beginning of its text, the number of sets, and its member in
 * each.
 */
export const COUNT_MISSING_SCRIPT: string = `${NOW_LUA}
local key, arg, missing = 1, 1, 0
while key <= #KEYS do
  local expected, sets = ARGV[arg], tonumber(ARGV[arg + 1])
  local found = redis.call('GETRANGE', KEYS[key], 0, #expected - 1)
  if found == '' then missing = missing + 1 end
  if found == expected then
    for set = 1, sets do
      if not redis.call('ZSCORE', KEYS[key + set], ARGV[arg + 1 + set]) then missing = missing + 1 end
    end
  end
  key = key + 1 + sets
  arg = arg + 2 + sets
end
return {now, missing}
`;

/**
 * Reads the id of the data set, and sets it if there is none. KEYS[1]: the id. ARGV[1]: its value if it has none yet
 * ("": none is set). Returns the id, or "", and what the server does when its memory is full ("" if it does not say).
 */
export const IDENTIFY_SCRIPT: string = `${NOW_LUA}
local dataset_id = redis.call('GET', KEYS[1])
if not dataset_id then
  dataset_id = ARGV[1]
  if dataset_id ~= '' then redis.call('SET', KEYS[1], dataset_id) end
end
local info = redis.pcall('INFO', 'memory')
local policy = type(info) == 'string' and string.match(info, 'maxmemory_policy:([%w-]+)') or ''
return {now, dataset_id, policy}
`;

/**
 * Tries the commands that the other scripts use for events. KEYS: a text and a sorted set that do not exist, and do not exist
 * afterwards. Returns the names of the commands that the user's ACL refuses. Any other refusal is not reported: it may pass.
 */
export const CHECK_RIGHTS_SCRIPT: string = `${NOW_LUA}
local text, set = KEYS[1], KEYS[2]
local answers = {now}
for _, command in ipairs({
  {'GET', text}, {'GETRANGE', text, 0, 0}, {'MGET', text}, {'EXISTS', text}, {'SET', text, '', 'PXAT', now + 1},
  {'ZADD', set, 0, ''}, {'PERSIST', set}, {'ZRANGE', set, 0, 0}, {'ZCARD', set},
  {'ZCOUNT', set, 0, 0}, {'ZRANGEBYSCORE', set, 0, 0}, {'ZRANGEBYLEX', set, '-', '+'}, {'ZREVRANGEBYLEX', set, '+', '-'},
  {'ZREM', set, ''}
}) do
  local answer = redis.pcall(unpack(command))
  local err = type(answer) == 'table' and answer.err or ''
  if string.find(err, 'NOPERM') or string.find(err, 'user executing the script') then answers[#answers + 1] = command[1] end
end
return answers
`;

/**
 * Puts hints on a short list. They may stay unread. KEYS[1]: the list. ARGV: how many hints, how many the list has at
 * most, and how long it lasts (ms).
 */
export const HINT_SCRIPT: string = `${NOW_LUA}
redis.call('PERSIST', KEYS[1])
for _ = 1, ARGV[1] do redis.call('RPUSH', KEYS[1], now) end
redis.call('LTRIM', KEYS[1], -ARGV[2], -1)
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return {now}
`;

/**
 * Checks records, and then makes a write for which WAIT can wait. KEYS: the key to write, then the records. ARGV: the
 * expected beginning of each record's text. Returns 2 for a record that begins so, 1 for one that does not, and 0 if
 * there is none.
 */
export const CONFIRM_SCRIPT: string = `${NOW_LUA}
local answers = {now}
redis.call('PERSIST', KEYS[1])
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

/** Returns the server's own report. KEYS[1]: any key on the node that is asked. */
export const REPORT_SCRIPT: string = `${NOW_LUA}
return {now, redis.call('INFO')}
`;
