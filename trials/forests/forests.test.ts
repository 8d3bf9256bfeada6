import fc from 'fast-check'
import { grow, planting } from './forest.js'
import { happening } from './happenings.js'
import { ForestLife } from './life.js'
import { expectedLookups, lookupAnswers } from './lookups.js'
import { type ForestNode, openForestNode } from './node.js'
import { type Answered, answeringRows, expectedAnswers, expectSame, storeAnswers } from './reads.js'
import { expectRoutes } from './routes.js'

// Forests of transactions that spend what others spend, recorded in any order while the chain goes on and is reorganised,
// against a plain model that decides from scratch. `npm run forests` does thousands of runs.

const RUNS = Number(process.env.RUNS ?? 15)
/** Every so many runs, all routes are asked at the end. */
const ROUTES_EVERY = 10

const nodes: ForestNode[] = []
beforeAll(async () => {
  nodes.push(await openForestNode(), await openForestNode())
})
afterAll(async () => {
  for (const node of nodes) await node.close()
})

const run = fc.record({
  plantings: fc.array(planting, { minLength: 3, maxLength: 14 }),
  happenings: fc.array(
    // After one of ten, everything is read; after the others, what the answers are read from.
    fc.record({ happening, reads: fc.nat(9).map((chance) => chance === 0) }),
    { minLength: 5, maxLength: 25 },
  ),
})

async function expectReads(life: ForestLife): Promise<void> {
  const { answers, forest, model, node } = life
  expectSame(await storeAnswers(node.graph, forest), expectedAnswers(answers, model))
  expectSame(await lookupAnswers(node.services, forest), expectedLookups(answers, forest))
}

/** The other node, filled from scratch in block order, answers the same about what counts. False: it could not be filled. */
async function expectRebuilt(life: ForestLife, other: ForestNode): Promise<boolean> {
  const rebuilt = await life.rebuilt(other)
  if (rebuilt === undefined) return false
  const { forest, node } = life
  const { counts } = life.answers.decision
  const isAnswered = (txid: string): boolean => counts.has(txid)
  const ofCounting = (answers: Answered): Answered =>
    Object.fromEntries(
      Object.entries(answers).filter(
        ([asked]) => !/^(transaction|height|inactive) /.test(asked) || isAnswered(asked.slice(-64)),
      ),
    )
  expectSame(
    ofCounting(await storeAnswers(other.graph, forest)),
    ofCounting(await storeAnswers(node.graph, forest)),
  )
  expectSame(await answeringRows(other, forest), await answeringRows(node, forest))
  return true
}

test('whatever is submitted in whatever order, the answers are those of what counts', async () => {
  const [node, other] = nodes
  if (node === undefined || other === undefined) throw new Error('there are two nodes')
  const happened: Record<string, number> = {}
  const count = (what: string, times = 1): void => {
    happened[what] = (happened[what] ?? 0) + times
  }
  const property = fc.asyncProperty(run, async ({ plantings, happenings }) => {
    count('runs')
    const life = await ForestLife.start(grow(plantings), node)
    for (const each of happenings) {
      await life.happen(each.happening)
      await life.expectSound()
      if (each.reads) await expectReads(life)
    }
    await life.follow()
    await life.submitProofs()
    await life.expectSound()
    await expectReads(life)
    if (await expectRebuilt(life, other)) count('rebuilt')
    if ((happened.runs ?? 0) % ROUTES_EVERY === 0) await expectRoutes(life)
    for (const [what, times] of Object.entries(life.happened)) count(what, times)
  })
  try {
    await fc.assert(property, { numRuns: RUNS, endOnFailure: true })
  } finally {
    if (process.env.RUNS !== undefined) process.stdout.write(`${JSON.stringify(happened, undefined, 2)}\n`)
  }
  // In so many, everything has happened.
  if (RUNS < 500) return
  for (const what of [
    'rebuilt',
    'reorg',
    'stale',
    'lost',
    'taken',
    'taken, proven',
    'ingested',
    'branch reorganised',
  ])
    expect({ what, happened: (happened[what] ?? 0) > 0 }).toEqual({ what, happened: true })
}, 3_600_000)
