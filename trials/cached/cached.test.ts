import fc from 'fast-check'
import { createApp } from '../../src/server/app.js'
import { choice, type Happening, happenings, manner } from '../../test/histories/happenings.js'
import { type Deed, deedOf, type History, type Shape, weighted } from '../../test/histories/history.js'
import { type Answer, ask, type Differences, type Question } from '../../test/histories/host.js'
import { Run } from '../../test/histories/run.js'
import { ServerHost } from '../../test/histories/server-host.js'
import { expectRuns } from '../../test/histories/trial.js'
import { IS_NIGHTLY } from '../../test/support/nightly.js'
import { listening } from '../../test/support/server/connections.js'
import { lastingHeaders, SILENT } from '../../test/support/server/test-server.js'

// Whatever is submitted, mined, reorganised, blocked or evicted, an answer from memory is the one that the store gives. After
// each happening a server is asked for everything that it may have cached, and so is another server over the same store, which
// caches nothing.

/** Some purses with few coins each, so that ordinals often cannot be placed yet; one pays for the rest. */
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
  /** After how many happenings an output is evicted, and which one. */
  evicted: fc.record({ after: fc.nat(40), at: fc.nat(60) }),
})

/** Requests for the records at these paths as lists; records may be cached one by one. */
function listsOf(paths: string[]): Question[] {
  const references = paths.flatMap((path) => path.split('/metadata/')[1] ?? [])
  const headers = { 'Content-Type': 'application/json' }
  const lists: Question[] = []
  for (let at = 0; at < references.length; at += LISTED) {
    const body = JSON.stringify(references.slice(at, at + LISTED))
    lists.push({ path: '/svc/gateway/metadata', headers, body })
  }
  return lists
}

/** The most entries of a list. */
const LISTED = 100

/** The paths of all answers that may be cached. */
function pathsOf({ subjects, transactions }: History): string[] {
  const outputs = subjects.flatMap(({ said, outpoint }) => said.map((_, vout) => outpoint(vout)))
  const names = transactions.flatMap(({ mint }) => mint?.name ?? [])
  return [
    ...['/names', '/inscriptions', '/tree'],
    ...['counts', 'newest/names', 'newest/inscriptions', 'tree'].map((list) => `/svc/gateway/${list}`),
    ...subjects.map(({ txid }) => `/tx/${txid}`),
    ...outputs.flatMap((outpoint) => [
      ...['', ':0', ':1', ':-1'].map((sequence) => `/content/${outpoint}${sequence}`),
      ...['', ':0', ':-1'].map((sequence) => `/svc/gateway/metadata/${outpoint}${sequence}`),
      ...['/ordinal/', '/parent/', '/svc/gateway/history/'].map((route) => route + outpoint),
    ]),
    ...names.flatMap((name) => [
      ...['origin/', 'mine/', ''].map((route) => `/svc/names/${route}${name}`),
      ...['/name/', '/svc/gateway/tree/'].map((route) => route + name),
      `/svc/names/mine/${name}q`,
    ]),
  ]
}

/** The parts of an answer that are the same each time. */
const lasting = (answer: Answer): unknown => ({
  ...{ status: answer.status, headers: lastingHeaders(answer), body: answer.body.toString('base64') },
})

test('whatever happens, no answer from memory is another than that of the store', async () => {
  await expectRuns({
    plan,
    runs: IS_NIGHTLY ? 60 : 2,
    least: ['reorg', 'block', 'evicted', 'branch reorganised', 'submit: lost'],
    async run({ deeds, mined, happenings: all, evicted }) {
      const run = await Run.start({
        ...{ deeds, shape: SHAPE },
        mined: { blocks: 6, share: 0.3, choice: mined },
        open: (history) => ServerHost.start(history),
      })
      const { config, graph, store, overlay, caches } = run.host.node
      const ping = () => graph.ping()
      // Pages link to names at the port of the server, as for a host.
      const port = () => Number(new URL(run.host.url).port)
      const bare = await listening(createApp({ config, overlay, graph: store, ping, port, logger: SILENT }))
      // Pages contain the host of the request.
      const askBare = async (question: Question): Promise<Answer> => {
        const { host } = new URL(run.host.url)
        return await ask(bare.url, { ...question, headers: { ...question.headers, host } })
      }
      const paths = pathsOf(run.history)
      const hits = (): number => caches.answers.hits
      const expectSame = async (when: string): Promise<void> => {
        await run.host.untilIdle()
        const found: Differences = {}
        for (const list of listsOf(paths)) {
          const [got, expected] = [lasting(await ask(run.host.url, list)), lasting(await askBare(list))]
          if (JSON.stringify(got) !== JSON.stringify(expected)) found[list.path] = { got, expected }
        }
        for (const path of paths) {
          const expected = lasting(await askBare({ path }))
          const got = lasting(await ask(run.host.url, { path }))
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
          return { ...run.happened, evicted: 1, hits: hits() }
        }
      } finally {
        await bare.close()
        await run.host.close()
      }
      return { ...run.happened, hits: hits() }
    },
  })
}, 3_600_000)
