/**
 * Milliseconds on a clock that is never set: for durations, deadlines, ages and orders. Only differences within one process mean
 * anything. Use the time of day only for people, and for comparisons with the times of blocks
 * (`test/unit/architecture/clocks.test.ts` has the list).
 */
export function monotonic(): number {
  return performance.now()
}

/** Whole milliseconds since 1970 as of the start of this process, and from then on by {@link monotonic}: for times that are stored. */
export function steadyTime(): number {
  return Math.floor(performance.timeOrigin + monotonic())
}
