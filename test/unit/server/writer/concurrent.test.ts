import { utf8 } from '../../../../backend/src/protocol/bytes.js'
import { beefOf, FakeChain, type FakeTransaction } from '../../../support/protocol/fake-chain.js'
import { posted, type TestServer, treeOf, useServers } from '../../../support/server/test-server.js'

const servers = useServers()

const NAME = 'abcdefghijklmnopqrst'

/** Reads until `until` is done; every answer must be one that the tree had at some moment, and none goes back. */
async function readMeanwhile(
  server: TestServer,
  mints: FakeTransaction[],
  until: Promise<unknown>,
): Promise<number> {
  let done = false
  const stop = (): void => {
    done = true
  }
  until.then(stop, stop)
  let deepest = 0
  let reads = 0
  while (!done) {
    const answer = await server.ask(`/svc/names/mine/${NAME}x`)
    expect(answer.status).toBe(200)
    const { domain, outpoint } = answer.json as { domain: string; outpoint: string }
    expect(NAME.startsWith(domain)).toBe(true)
    expect(domain.length).toBeGreaterThanOrEqual(deepest)
    deepest = domain.length
    reads++
    const mint = mints[domain.length - 1]
    if (mint === undefined) continue
    // The node and the name of a mint are there together, and all before it.
    expect(outpoint).toBe(mint.outpoint(1))
    const before = mints.slice(0, domain.length).map((each) => each.outpoint(2))
    const genuine = await server.ask('/svc/names/origins', posted(before))
    expect(genuine.json).toEqual(Object.fromEntries(before.map((each) => [each, true])))
    const found = await server.ask('/lookup', posted({ service: 'ls_names', query: { name: domain } }))
    expect(found.json).toMatchObject({ outputs: [{ outputIndex: 2 }] })
  }
  return reads
}

test('fifty submissions at once, some of them twice, come to what one after the other comes to', async () => {
  const chain = new FakeChain()
  const mints = chain.mintAll(NAME)
  const notes = Array.from({ length: 10 }, (_, at) =>
    chain.inscribe({ contentType: 'text/plain', body: utf8(`note ${at}`) }),
  )
  const server = await servers.start(treeOf(chain.deployment))
  await server.submit(beefOf(chain.genesis))

  const once: [FakeTransaction, string[]][] = [
    ...mints.map((mint): [FakeTransaction, string[]] => [mint, ['tm_names']]),
    ...notes.map((note): [FakeTransaction, string[]] => [note, ['tm_ordinals']]),
  ]
  const all = [...once, ...once.slice(0, 20)]
  expect(all).toHaveLength(50)
  // A mint that comes before its parent waits for it here.
  const work = Promise.all(all.map(([each, topics]) => server.submit(beefOf(each), topics)))
  const reads = await Promise.all([1, 2, 3].map(() => readMeanwhile(server, mints, work)))
  const answers = await work
  expect(Math.min(...reads)).toBeGreaterThan(0)
  expect(answers.map(({ status }) => status)).toEqual(all.map(() => 200))

  const quiet = await servers.start(treeOf(chain.deployment))
  await quiet.submit(beefOf(chain.genesis))
  for (const [each, topics] of once) await quiet.submit(beefOf(each), topics)
  expect(server.rows()).toEqual(quiet.rows())
  for (const [at, mint] of mints.entries()) {
    const name = NAME.slice(0, at + 1)
    expect((await server.ask(`/svc/names/origin/${name}`)).json).toEqual({ name, outpoint: mint.outpoint(2) })
  }
  for (const [at, note] of notes.entries())
    expect((await server.ask(`/content/${note.outpoint(0)}`)).body.toString('utf8')).toBe(`note ${at}`)
})
