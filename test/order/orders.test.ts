import fc from 'fast-check'
import { OrderRun, plan } from './order-run.js'

// The index is a pure function of what is known (`spec/overlay.md`, Order independence): random histories of both topics are
// submitted over HTTP in random order, each transaction with some of its sources, and every answer is held against a model
// that knows no order. `npm run orders` does thousands of runs.

const RUNS = Number(process.env.RUNS ?? 16)
const SEED = process.env.SEED === undefined ? Date.now() % 2 ** 31 : Number(process.env.SEED)

test('whatever comes in whatever order, every answer is that of all that is known', async () => {
  const happened: Record<string, number> = {}
  const property = fc.asyncProperty(plan, async (each) => {
    const run = await OrderRun.of(each)
    for (const [what, times] of Object.entries(run.happened)) happened[what] = (happened[what] ?? 0) + times
  })
  try {
    await fc.assert(property, { seed: SEED, numRuns: RUNS, endOnFailure: true })
  } finally {
    if (process.env.RUNS !== undefined)
      process.stdout.write(`SEED=${SEED} ${JSON.stringify(happened, undefined, 2)}\n`)
  }
}, 7_200_000)
