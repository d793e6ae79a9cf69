const DAY_MS = 86_400_000;

/** Notes about an authentic delivery that a receiver refuses for its age, unless it knows the event already. */
export function notesOfAge(signedAt: Date): string[] {
  const ageMs = Date.now() - signedAt.getTime();
  const days = Math.floor(ageMs / DAY_MS);
  if (days >= 7)
    return [`It was signed ${days} days ago: by default, a receiver refuses what is older than 7 days.`];
  if (ageMs < -DAY_MS) return ["It is dated more than a day in the future: a receiver refuses it."];
  return [];
}
