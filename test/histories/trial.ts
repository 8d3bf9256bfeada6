import fc from 'fast-check'

const { RUNS, SEED, REPLAY, SHRINK } = process.env

/** Whether somebody asked for a number of runs, as `npm run histories` and `npm run orders` do. */
export const IS_LONG = RUNS !== undefined

/**
 * Does a property as often as `RUNS` says: other runs each time, and the same ones where nobody says how many. `SEED` and
 * `REPLAY` repeat a run that failed, and `SHRINK=60` looks for a smaller one for so many seconds.
 *
 * @param options.least What must have happened in some run, if there are 500 or more.
 * @param options.found Runs that failed once, by `SEED` and `REPLAY`: they are repeated first.
 * @param options.run Does one run, and says how often each thing happened.
 */
export async function expectRuns<Plan>(options: {
  plan: fc.Arbitrary<Plan>
  runs: number
  least?: readonly string[]
  found?: readonly (readonly [seed: number, path: string])[]
  /** The plans of those, where the others have more. */
  foundIn?: fc.Arbitrary<Plan>
  run(plan: Plan, index: number): Promise<Record<string, number>>
}): Promise<void> {
  const { plan, runs, least = [], found = [], foundIn = plan, run } = options
  const seed = Number(SEED ?? (IS_LONG ? Date.now() % 2 ** 31 : 1))
  const happened: Record<string, number> = {}
  let done = 0
  const propertyOf = (plans: fc.Arbitrary<Plan>) =>
    fc.asyncProperty(plans, async (each) => {
      const counts = { runs: 1, ...(await run(each, done++)) }
      for (const [what, times] of Object.entries(counts)) happened[what] = (happened[what] ?? 0) + times
    })
  if (!IS_LONG)
    for (const [seed, path] of found)
      await fc.assert(propertyOf(foundIn), { seed, path, numRuns: 1, endOnFailure: true })
  const numRuns = Number(RUNS ?? runs)
  try {
    await fc.assert(propertyOf(plan), {
      seed,
      numRuns,
      ...(REPLAY !== undefined && { path: REPLAY }),
      ...(SHRINK === undefined
        ? { endOnFailure: true }
        : { interruptAfterTimeLimit: Number(SHRINK) * 1000, markInterruptAsFailure: true }),
    })
  } finally {
    if (IS_LONG) process.stdout.write(`SEED=${seed} ${JSON.stringify(happened, undefined, 2)}\n`)
  }
  if (numRuns < 500) return
  expect(least.filter((what) => happened[what] === undefined)).toEqual([])
}
