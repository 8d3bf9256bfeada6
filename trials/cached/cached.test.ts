import fc from 'fast-check'
import { createApp } from '../../src/server/app.js'
import { listening } from '../../test/support/server/connections.js'
import { SILENT } from '../../test/support/server/test-server.js'
import { choice, type Happening, happenings, manner } from '../histories/happenings.js'
import { type Deed, deedOf, type History, type Shape, weighted } from '../histories/history.js'
import { type Answer, ask, type Differences } from '../histories/host.js'
import { Run } from '../histories/run.js'
import { ServerHost } from '../histories/server-host.js'
import { expectRuns } from '../histories/trial.js'

// Whatever is submitted, mined, reorganised, blocked or evicted, an answer from memory is the one that the store gives. After
// each happening a server is asked for everything that it may have cached, and so is another over the same store that
// caches nothing.

/** Some purses with few coins each, so that what places an ordinal is often not known yet; one pays for the rest. */
const SHAPE: Shape = {
  covenantVersion: 1,
  purses: [...new Array<number[]>(5).fill([1, 0, 4, 7]), [50, 50, 50]],
}

const deed: fc.Arbitrary<Deed> = deedOf({
  kind: weighted({ mint: 2, move: 4, inscribe: 2 }),
  from: weighted({ free: 8, spent: 1, all: 1 }),
  paysFrom: weighted({ free: 8, spent: 1 }),
  paysAt: weighted({ last: 2, first: 2, nowhere: 1 }),
  carries: fc.constantFrom(true, true, false),
  flow: weighted({ 'goes on': 3, free: 1 }),
  unlocking: fc.constant(Number.POSITIVE_INFINITY),
  foreign: fc.constant(Number.POSITIVE_INFINITY),
  coins: { minLength: 1, maxLength: 3 },
})

const happening: fc.Arbitrary<Happening> = fc.oneof(
  { weight: 16, arbitrary: happenings.submit(weighted({ next: 2, new: 2, any: 1, moved: 1 }), manner) },
  { weight: 2, arbitrary: happenings.ingest },
  { weight: 1, arbitrary: happenings.block },
  { weight: 1, arbitrary: happenings.unblock },
  { weight: 1, arbitrary: happenings.mine(fc.constant(0)) },
  { weight: 2, arbitrary: happenings.mine(fc.integer({ min: 1, max: 4 })) },
  { weight: 2, arbitrary: happenings.follow },
)

const plan = fc.record({
  deeds: fc.array(deed, { minLength: 5, maxLength: 12, size: 'max' }),
  mined: choice,
  happenings: fc.array(happening, { minLength: 5, maxLength: 24, size: 'max' }),
  reevaluations: fc.constantFrom(undefined, undefined, 1),
  /** After how many happenings an output is evicted, and which. */
  evicted: fc.record({ after: fc.nat(40), at: fc.nat(60) }),
})

/** The paths of all answers that may be cached. */
function pathsOf({ subjects, transactions }: History): string[] {
  const outputs = subjects.flatMap(({ said, outpoint }) => said.map((_, vout) => outpoint(vout)))
  const names = transactions.flatMap(({ mint }) => mint?.name ?? [])
  return [
    ...outputs.flatMap((outpoint) => [
      ...['', ':0', ':1', ':-1'].map((sequence) => `/content/${outpoint}${sequence}`),
      ...['', ':0', ':-1'].map((sequence) => `/svc/gateway/metadata/${outpoint}${sequence}`),
    ]),
    ...names.flatMap((name) => [
      ...['origin/', 'mine/', ''].map((route) => `/svc/names/${route}${name}`),
      `/svc/names/mine/${name}q`,
    ]),
  ]
}

/** What of an answer is the same each time. */
function lasting({ status, headers, body }: Answer): unknown {
  const { date: _, 'x-request-id': __, 'keep-alive': ___, ...others } = headers
  return { status, headers: others, body: body.toString('base64') }
}

test('whatever happens, no answer from memory is another than that of the store', async () => {
  await expectRuns({
    plan,
    runs: 6,
    least: ['reorg', 'block', 'evicted', 'branch reorganised', 'submit: lost'],
    async run({ deeds, mined, happenings: all, reevaluations, evicted }) {
      const run = await Run.start({
        ...{ deeds, shape: SHAPE, isBounded: reevaluations !== undefined },
        mined: { blocks: 6, share: 0.3, choice: mined },
        open: (history) => ServerHost.start({ ...history, reevaluations }),
      })
      const { config, graph, overlay } = run.host.node
      const ping = () => graph.ping()
      const bare = await listening(createApp({ config, overlay, graph: graph.store, ping, logger: SILENT }))
      const paths = pathsOf(run.history)
      const expectSame = async (when: string): Promise<void> => {
        await run.host.untilIdle()
        const found: Differences = {}
        for (const path of paths) {
          const [got, expected] = [await ask(run.host.url, { path }), await ask(bare.url, { path })].map(
            lasting,
          )
          if (JSON.stringify(got) !== JSON.stringify(expected)) found[path] = { got, expected }
        }
        run.expectSame(when, found)
      }
      try {
        await run.submitGenesis()
        for (const [index, each] of all.entries()) {
          await run.happen(each)
          await expectSame(`after ${each.kind}`)
          if (run.mayTie) return run.happened
          if (index !== evicted.after) continue
          const { txid, said } = run.history.subjects[evicted.at % run.history.subjects.length] ?? {}
          if (txid === undefined) continue
          await graph.evict({ txid, vout: evicted.at % (said?.length ?? 1) })
          await expectSame('after an eviction')
          return { ...run.happened, evicted: 1, hits: graph.caches.answers.hits }
        }
      } finally {
        await bare.close()
        await run.host.close()
      }
      return { ...run.happened, hits: graph.caches.answers.hits }
    },
  })
}, 3_600_000)
