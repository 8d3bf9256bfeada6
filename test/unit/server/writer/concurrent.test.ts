import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { utf8 } from '../../../../backend/src/protocol/bytes.js'
import {
  beefOf,
  FakeChain,
  type FakeTransaction,
  OPEN_LOCK,
  p2pkh,
} from '../../../support/protocol/fake-chain.js'
import {
  type Answer,
  posted,
  type TestServer,
  treeOf,
  useServers,
} from '../../../support/server/test-server.js'

const servers = useServers()

const NAME = 'abcdefghijklmnopqrst'

/** The topics that admitted something of a submission. */
function admitted({ json }: Answer): string[] {
  const steak = json as Record<string, { outputsToAdmit: number[] }>
  return Object.keys(steak).filter((topic) => (steak[topic]?.outputsToAdmit.length ?? 0) > 0)
}

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
  const [reads, answers] = await Promise.all([
    Promise.all([1, 2, 3].map(() => readMeanwhile(server, mints, work))),
    work,
  ])
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
  for (const [at, note] of notes.entries()) {
    expect((await server.ask(`/content/${note.outpoint(0)}`)).body.toString('utf8')).toBe(`note ${at}`)
  }
})

test('a chain that is sent down one connection without waiting is admitted in the order sent', async () => {
  const chain = new FakeChain()
  const server = await servers.start(treeOf(chain.deployment))
  const mints = chain.mintAll('abcdefghij')
  const requests = [chain.genesis, ...mints].map((transaction) => {
    const beef = beefOf(transaction)
    const head = [
      'POST /submit HTTP/1.1',
      'Host: minetree',
      'X-Topics: ["tm_names"]',
      `Content-Length: ${beef.length}`,
      // The last one closes, so that the end of the answers is the end of the connection.
      ...(transaction === mints.at(-1) ? ['Connection: close'] : []),
    ]
    return Buffer.concat([Buffer.from(`${head.join('\r\n')}\r\n\r\n`), beef])
  })
  const { hostname, port } = new URL(server.url)
  const socket = connect(Number(port), hostname)
  socket.write(Buffer.concat(requests))
  const answered = (await text(socket)).match(/"tm_names":\{"outputsToAdmit":\[[\d,]*\]/g)
  const all = '"tm_names":{"outputsToAdmit":[0,1,2]'
  expect(answered).toEqual(['"tm_names":{"outputsToAdmit":[0]', ...mints.map(() => all)])
  expect((await server.ask('/svc/names/mine/abcdefghijk')).json).toMatchObject({ domain: 'abcdefghij' })
})

test('of fifty different mints from one node one is admitted, and the others hear of it', async () => {
  const chain = new FakeChain()
  const server = await servers.start(treeOf(chain.deployment))
  await server.submit(beefOf(chain.genesis))
  const from = chain.node('')
  const coins = Array.from({ length: 50 }, () => ({ satoshis: 1000, lockingScript: OPEN_LOCK }))
  const purse = chain.spend({ inputs: [], outputs: coins })
  const mints = coins.map((_, vout) =>
    chain.mint('a', { from, ownerLock: p2pkh(vout + 1), funding: [{ transaction: purse, vout }] }),
  )
  const beefs = mints.map((mint) => beefOf(mint, { proven: false, with: [chain.genesis, purse] }))
  const answers = await Promise.all(beefs.map((beef) => server.submit(beef)))
  const winners = mints.filter((_, at) => answers[at]?.status === 200)
  expect(winners).toHaveLength(1)
  const [winner] = winners
  expect(answers.filter(({ status }) => status === 409)).toHaveLength(49)
  for (const { status, json } of answers) {
    if (status === 409) expect(json).toMatchObject({ code: 'CONFLICT', txid: winner?.txid })
  }
  expect((await server.ask('/svc/names/origin/a')).json).toMatchObject({
    ...{ name: 'a', outpoint: winner?.outpoint(2), proven: false },
  })
  const rows = server.rows()
  expect(rows.names).toHaveLength(1)
  expect(rows.nodes).toHaveLength(3)
})

test('one mint sent fifty times at once is admitted once', async () => {
  const chain = new FakeChain()
  const server = await servers.start(treeOf(chain.deployment))
  await server.submit(beefOf(chain.genesis))
  const mint = chain.mint('a')
  const answers = await Promise.all(Array.from({ length: 50 }, () => server.submit(beefOf(mint))))
  expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200))
  expect(answers.filter((answer) => admitted(answer).includes('tm_names'))).toHaveLength(50)
  expect(server.rows().admissions).toHaveLength(5)
  expect(server.rows().names).toHaveLength(1)
})
