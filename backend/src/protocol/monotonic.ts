/**
 * Milliseconds on a clock that nobody sets: for durations, deadlines, ages and orders. Only differences mean anything, and only
 * within one process. The time of day is for what people read, and for what is compared with the times of blocks
 * (`test/unit/architecture/clocks.test.ts` has the list).
 */
export function monotonic(): number {
  return performance.now()
}

/** Whole milliseconds since 1970 as of the start of this process, and from then on by {@link monotonic}: for times that are stored. */
export function steadyTime(): number {
  return Math.floor(performance.timeOrigin + monotonic())
}
