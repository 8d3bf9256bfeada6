/** Work in steps: it yields where other requests may run. */
export type Steps<Result> = Generator<void, Result>

/** Does all steps at once: for work that is known to be short. */
export function atOnce<Result>(steps: Steps<Result>): Result {
  for (;;) {
    const step = steps.next()
    if (step.done === true) return step.value
  }
}
