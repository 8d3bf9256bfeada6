import { setTimeout as sleep } from 'node:timers/promises'
import { vi } from 'vitest'
import { readBeef } from '../../../../backend/src/graph/read-beef.js'
import { encodeBeef } from '../../../../backend/src/graph/write-beef.js'
import { concatBytes, utf8 } from '../../../../backend/src/protocol/bytes.js'
import { GeneralError } from '../../../../backend/src/protocol/coded-error.js'
import { readTransaction } from '../../../../backend/src/protocol/transaction.js'
import { unprovenDepth } from '../../../../src/server/writer/submission-rules.js'
import { expectError } from '../../../support/gateway/expect-error.js'
import { whileReplaced } from '../../../support/gateway/faults.js'
import {
  beefOf,
  FakeChain,
  type FakeTransaction,
  inscriptionScript,
  OPEN_LOCK,
} from '../../../support/protocol/fake-chain.js'
import { encodeTransaction, varint } from '../../../support/protocol/raw-transaction.js'
import { proofOf } from '../../../support/protocol/transactions.js'
import { useHeaderWorlds } from '../../../support/server/header-world.js'
import { holdWrites } from '../../../support/server/held-writes.js'
import { type Answer, submission, type TestServer, useServers } from '../../../support/server/test-server.js'
import { until } from '../../../support/server/waiting.js'

const servers = useServers()
const worlds = useHeaderWorlds()
const chain = new FakeChain()

const coin = (): FakeTransaction => chain.spend({ outputs: [{ satoshis: 5000, lockingScript: OPEN_LOCK }] })

/** A chain of transactions behind a coin, each with one output more to spend; the last with an inscription. */
function chainBehind(first: FakeTransaction, length: number): FakeTransaction[] {
  const all = [first]
  for (let at = 1; at <= length; at++) {
    const lockingScript =
      at === length ? inscriptionScript({ contentType: 'text/plain', body: utf8('x') }) : OPEN_LOCK
    const inputs = [{ transaction: all[at - 1] ?? first, vout: 0 }]
    all.push(chain.spend({ inputs, outputs: [lockingScript] }))
  }
  return all
}

function unprovenChain(length: number): Uint8Array {
  const all = chainBehind(coin(), length)
  const subject = all[length]
  if (subject === undefined) throw new Error('the chain has no end')
  return beefOf(subject, { proven: false, with: all.slice(0, -1), unproven: all.slice(1, -1) })
}

const refused = async (server: TestServer, beef: Uint8Array, why: RegExp): Promise<void> => {
  const before = server.rows()
  const error = expect.stringMatching(why)
  expectError(await server.submit(beef, ['tm_ordinals']), {
    status: 413,
    code: 'TOO_LARGE',
    overlay: true,
    error,
  })
  expect(server.rows()).toEqual(before)
}
const taken = async (server: TestServer, beef: Uint8Array): Promise<void> =>
  await server.take(beef, ['tm_ordinals'])

describe('a BEEF', () => {
  test('of too many transactions is refused', async () => {
    const server = await servers.start({ MAX_BEEF_TRANSACTIONS: '3' })
    await refused(server, unprovenChain(3), /at most 3 transactions/)
    await taken(server, unprovenChain(2))
  })

  test('with too long a chain of unproven transactions is refused, with as long a one of proven ones taken', async () => {
    const server = await servers.start({}, { limits: { maxBeefDepth: 3 } })
    await refused(server, unprovenChain(4), /unproven transactions may have at most 3/)
    await taken(server, unprovenChain(3))
    const all = chainBehind(coin(), 4)
    const subject = all[4]
    if (subject === undefined) throw new Error('the chain has no end')
    await taken(server, beefOf(subject, { with: all.slice(0, -1), unproven: all.slice(1, -1) }))
  })

  test('with too many inputs and outputs in all is refused', async () => {
    const server = await servers.start({}, { limits: { maxBeefParts: 6 } })
    await refused(server, unprovenChain(3), /at most 6 inputs and outputs/)
    await taken(server, unprovenChain(2))
  })

  test('with too many inputs and ordinals in its unproven transactions is refused, but not for other outputs', async () => {
    const server = await servers.start({}, { limits: { maxUnprovenParts: 4 } })
    const lockingScript = inscriptionScript({ contentType: 'text/plain', body: utf8('text') })
    const ordinal = { satoshis: 1, lockingScript }
    const plain = { satoshis: 1, lockingScript: OPEN_LOCK }
    const wide = chain.spend({ outputs: [ordinal, ordinal, ordinal, plain, plain] })
    const inputs = [0, 1, 2, 3].map((vout) => ({ transaction: wide, vout }))
    const most = /at most 4 inputs and outputs with ordinals \(twice MAX_BEEF_TRANSACTIONS\)/
    const first = inputs.slice(0, 3)
    await refused(server, beefOf(chain.spend({ inputs: first, outputs: [ordinal, ordinal] })), most)
    const next = chain.spend({ inputs: inputs.slice(0, 1), outputs: [plain, plain, plain, plain] })
    await refused(server, beefOf(next, { with: [wide] }), most)
    await taken(server, beefOf(wide))
    await taken(server, beefOf(chain.spend({ inputs: first, outputs: [ordinal, plain, plain, plain] })))
  })

  test('that is built on an unproven one with too much behind it is 503, until that is mined', async () => {
    const server = await servers.start()
    const full = new GeneralError('TOO_MANY_DESCENDANTS', '5000 transactions are built on a coin')
    const answer = await whileReplaced(server.node.graph, 'record', {
      by: () => Promise.reject(full),
      during: () => server.submit(beefOf(chain.inscribe({ contentType: 'text/plain', body: utf8('text') }))),
    })
    const error = expect.stringContaining('5000 transactions are built on')
    expectError(answer, { status: 503, code: 'NOT_READY', error, overlay: true })
    expect(answer.headers['retry-after']).toBe('600')
  })

  test('with too long a script is refused, whichever it is', async () => {
    const server = await servers.start({}, { limits: { maxScriptBytes: 1024 } })
    const long = chain.inscribe({ contentType: 'text/plain', body: new Uint8Array(1024) })
    await refused(server, beefOf(long), /a script of more than 1024 bytes/)
    const next = chain.spend({ inputs: [long], outputs: [inscriptionScript({ contentType: 'text/plain' })] })
    await refused(server, beefOf(next, { with: [long] }), /a script of more than 1024 bytes/)
    await taken(server, beefOf(chain.inscribe({ contentType: 'text/plain', body: new Uint8Array(900) })))
  })
})

describe('what a block holds', () => {
  const LIMITS = { limits: { maxUnprovenParts: 10, maxBeefParts: 20, maxScriptBytes: 1024 } }
  const wide = (made: FakeChain, name: string, outputs: number): FakeTransaction =>
    made.mint(name, { trailing: new Array(outputs).fill({ satoshis: 0, lockingScript: new Uint8Array() }) })

  test('is taken with any number of outputs and any length of scripts, and so is what is built on it', async () => {
    const world = await worlds.start({}, LIMITS)
    const { chain: tree, server, headers } = world
    const [a, ab, abc] = [wide(tree, 'a', 10_001), wide(tree, 'ab', 100), tree.mint('abc')]
    for (const mint of [a, ab, abc]) headers.mine([mint])
    const answers = [await world.submit(abc, [a, ab]), await world.submit(a), await world.submit(ab, [a])]
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200])
    for (const [name, mint] of Object.entries({ a, ab, abc })) {
      const origin = { outpoint: mint.outpoint(2) }
      expect((await server.ask(`/svc/names/origin/${name}`)).json).toMatchObject(origin)
    }
    // What is read of them goes through the same parts.
    expect((await server.ask('/svc/names/proof/abc')).status).toBe(200)
    const inputs = Array.from({ length: 1100 }, () => tree.madeUpCoin())
    const many = tree.mint('ac', { funding: inputs })
    headers.mine([many])
    const answer = await world.submit(many, [a])
    expect(answer).toMatchObject({ status: 200, json: { tm_names: { outputsToAdmit: [0, 1, 2] } } })
    // Of what is known, nothing is written once more.
    const rows = server.rows()
    expect([(await world.submit(many, [a])).json, server.rows()]).toEqual([answer.json, rows])
  })

  test('and without its path it is not', async () => {
    const world = await worlds.start({}, LIMITS)
    const { chain: tree, server, headers } = world
    const purse = coin()
    headers.mine([purse])
    const trailing = new Array(30).fill({ satoshis: 0, lockingScript: new Uint8Array() })
    const mint = tree.mint('a', { funding: [purse], trailing })
    const beef = headers.branch.beef(mint, [tree.genesis, purse])
    expectError(await server.submit(beef), {
      ...{ status: 413, code: 'TOO_LARGE', overlay: true },
      error: expect.stringMatching(/at most 20 inputs and outputs/),
    })
    // Nor where the path leads to no block.
    const forged = encodeBeef([{ raw: mint.raw, proof: proofOf({ txid: mint.txid, height: 800_001 }) }])
    expectError(await server.submit(forged), {
      ...{ status: 400, code: 'BAD_BODY', overlay: true },
      error: expect.stringMatching(/merkle path .* leads to a root/),
    })
  })

  test('has as many inputs as there is memory for', async () => {
    const world = await worlds.start({}, { limits: { maxProvenInputs: 100_000 } })
    const { chain: tree, headers, server } = world
    const { raw } = tree.mint('a', { from: tree.node(''), funding: [] })
    // The covenant looks at no other input: more of them leave the mint a mint.
    const more = [varint(100_001), new Uint8Array(41 * 100_000)]
    const mint = readTransaction(concatBytes(raw.subarray(0, 4), ...more, raw.subarray(5)))
    headers.mine([mint])
    expectError(await server.submit(headers.branch.beef(mint)), {
      ...{ status: 413, code: 'TOO_LARGE', overlay: true },
      error: expect.stringMatching(/100001 inputs; this host accepts at most 100000/),
    })
  })
})

test('a transaction as long as an inner node of a merkle tree is refused, whichever it is', async () => {
  const server = await servers.start()
  const node = encodeTransaction({
    inputs: [{ outpoint: chain.madeUpCoin(), unlockingScript: Uint8Array.of(0x51) }],
    outputs: [{ satoshis: 1, lockingScript: Uint8Array.of(0x51, 0x51, 0x51) }],
  })
  expect(node).toHaveLength(64)
  const transaction = readTransaction(node)
  const fake = { ...coin(), txid: transaction.txid, raw: node, transaction }
  const spender = chain.spend({ inputs: [fake], outputs: [inscriptionScript({ contentType: 'text/plain' })] })
  const before = server.rows()
  for (const beef of [beefOf(fake), beefOf(spender, { with: [fake] })])
    expectError(await server.submit(beef, ['tm_ordinals']), {
      ...{ status: 400, code: 'BAD_BODY', overlay: true, error: expect.stringMatching(/has 64 bytes/) },
    })
  expect(server.rows()).toEqual(before)
})

describe('how deep unproven transactions stand', () => {
  const depthOf = (beef: Uint8Array): number => {
    const contents = readBeef(beef)
    return unprovenDepth(contents)
  }

  test.each([0, 1, 2, 9000])('is %d in a chain of as many', (length) => {
    if (length === 0) expect(depthOf(beefOf(coin()))).toBe(0)
    else expect(depthOf(unprovenChain(length))).toBe(length)
  })

  test('is the longest way back, where there are more ways than could be walked', () => {
    const all = [coin()]
    for (let at = 0; at < 60; at++) {
      const transaction = all[at]
      if (transaction === undefined) throw new Error('there is one before each')
      const inputs = [0, 1].map((vout) => ({ transaction, vout }))
      const outputs = [1, 1].map((satoshis) => ({ satoshis, lockingScript: OPEN_LOCK }))
      all.push(chain.spend({ inputs, outputs }))
    }
    const subject = all[60]
    if (subject === undefined) throw new Error('the chain has no end')
    const beef = beefOf(subject, { proven: false, with: all.slice(0, -1), unproven: all.slice(1, -1) })
    expect(depthOf(beef)).toBe(60)
  })
})

const CLIENT_BUSY = { status: 429, code: 'RATE_LIMITED' } as const

describe('submissions that wait', () => {
  const note = (bytes = 1): Uint8Array =>
    beefOf(chain.inscribe({ contentType: 'text/plain', body: new Uint8Array(bytes) }))

  /** @param address Of the client, as a proxy would hand it on. */
  async function send(server: TestServer, beef: Uint8Array, address?: string): Promise<Answer> {
    const { headers, ...question } = submission(beef, ['tm_ordinals'])
    const forwarded: Record<string, string> = address === undefined ? {} : { 'X-Forwarded-For': address }
    return await server.ask('/submit', { ...question, headers: { ...headers, ...forwarded } })
  }

  /** Holds the turn while submissions come, then lets all of them through. */
  async function whileHeld(
    server: TestServer,
    beefs: Uint8Array[],
    { refusals, from = [] }: { refusals: number; from?: string[] },
  ): Promise<number[]> {
    const held = holdWrites(server.node)
    let answered = 0
    const answers = beefs.map(async (beef, at) => {
      const address = from[at]
      const answer = await send(server, beef, address)
      answered++
      if (answer.status !== 200) {
        const busy = address === undefined ? ({ status: 503, code: 'NOT_READY' } as const) : CLIENT_BUSY
        expectError(answer, { ...busy, overlay: true })
        expect(answer.headers['retry-after']).toBe('5')
      }
      return answer.status
    })
    // Those over the limit are answered at once, while the others wait.
    while (answered < refusals) await sleep(10)
    await until(() => held.waiting() === beefs.length - refusals, 'the others wait')
    await held.release()
    return (await Promise.all(answers)).sort()
  }

  test('are so many and no more', async () => {
    const server = await servers.start({ MAX_WAITING_SUBMISSIONS: '3' })
    const beefs = Array.from({ length: 5 }, () => note())
    expect(await whileHeld(server, beefs, { refusals: 2 })).toEqual([200, 200, 200, 503, 503])
    for (const beef of beefs) await taken(server, beef)
  })

  test('are so many of one client and no more, and others still come', async () => {
    const env = { TRUST_PROXY: '1', MAX_WAITING_SUBMISSIONS: '4' }
    const server = await servers.start(env, { limits: { maxClientSubmissions: 2 } })
    const beefs = Array.from({ length: 4 }, () => note())
    const others = Array.from({ length: 2 }, () => note())
    const from = [...beefs.map(() => '192.0.2.1'), ...others.map(() => '192.0.2.2')]
    const statuses = await whileHeld(server, [...beefs, ...others], { refusals: 2, from })
    expect(statuses).toEqual([200, 200, 200, 200, 429, 429])
    // A client that was answered may submit again.
    const again = await Promise.all(beefs.slice(0, 2).map((beef) => send(server, beef, '192.0.2.1')))
    expect(again.map(({ status }) => status)).toEqual([200, 200])
  })

  test('have their turn before larger ones that came earlier, and before what others wait for', async () => {
    const server = await servers.start()
    const parent = chain.spend({ inputs: [coin()], outputs: Array.from({ length: 200 }, () => OPEN_LOCK) })
    const inputs = Array.from({ length: 200 }, (_, vout) => ({ transaction: parent, vout }))
    await taken(server, beefOf(chain.spend({ inputs, outputs: [OPEN_LOCK] })))
    const order: string[] = []
    const answered: Promise<unknown>[] = []
    // What comes later is due later, on a busy machine much later.
    const clock = vi.spyOn(performance, 'now').mockReturnValue(performance.now())
    const held = holdWrites(server.node)
    const beefs = { large: note(20_000), parent: beefOf(parent), small: note() }
    for (const [name, beef] of Object.entries(beefs)) {
      answered.push(send(server, beef).then(() => order.push(name)))
      await until(() => held.waiting() === answered.length, `${name} waits`)
    }
    await held.release()
    clock.mockRestore()
    await Promise.all(answered)
    expect(order).toEqual(['small', 'parent', 'large'])
  })

  test('have so many bytes and no more; one alone is taken however large', async () => {
    const server = await servers.start({}, { limits: { maxSubmissionBytes: 4096 } })
    expect(await whileHeld(server, [note(3000), note(3000)], { refusals: 1 })).toEqual([200, 503])
    await taken(server, note(10_000))
    // Those that were answered hold nothing any more.
    expect(await whileHeld(server, [note(1500), note(1500)], { refusals: 0 })).toEqual([200, 200])
  })
})

describe('JSON that nests deeper than any stack', () => {
  const depth = 60_000
  let server: TestServer
  beforeAll(async () => {
    server = await servers.start()
  })

  test.each([
    ['arrays', `${'['.repeat(depth)}${']'.repeat(depth)}`],
    ['arrays that do not end', '['.repeat(2 * depth)],
    ['a query', `{"service":"ls_names","query":${'['.repeat(depth)}${']'.repeat(depth)}}`],
    ['objects', `{"service":"ls_names","query":${'{"a":'.repeat(depth / 4)}1${'}'.repeat(depth / 4)}}`],
    ['a form', `{"service":"ls_ordinals","query":{"map":{"a":${'['.repeat(depth)}${']'.repeat(depth)}}}}`],
  ])('is no question: %s', async (_, body) => {
    const answer = await server.ask('/lookup', { method: 'POST', body })
    expectError(answer, { status: 400, code: 'BAD_BODY', overlay: true })
  })

  test('is no list, and no directory', async () => {
    const body = `${'['.repeat(30_000)}${']'.repeat(30_000)}`
    for (const path of ['/svc/gateway/metadata', '/svc/names/origins'])
      expectError(await server.ask(path, { method: 'POST', body }), { status: 400, code: 'BAD_BODY' })
    const map = utf8(`{"a":${'['.repeat(400_000)}${']'.repeat(400_000)}}`)
    const deep = chain.inscribe({ contentType: 'gw-fs/json', body: map })
    await taken(server, beefOf(deep))
    expectError(await server.ask(`/content/${deep.outpoint(0)}/a`), { status: 404, code: 'NOT_FOUND' })
  })
})
