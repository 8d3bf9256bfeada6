/**
 * Milliseconds on a clock that nobody sets: for durations, deadlines and ages. Only differences mean anything, and only within
 * one process. The time of day is for what people read, and for what is compared with the times of blocks.
 */
export function monotonic(): number {
  return performance.now()
}
