import { setTimeout as sleep } from 'node:timers/promises'
import { utf8 } from '../../../backend/src/protocol/bytes.js'
import { type Running, useBuiltCli } from '../../support/cli/built-cli.js'
import { expectError } from '../../support/gateway/expect-error.js'
import { sampleOf } from '../../support/nightly.js'
import {
  beefOf,
  FakeChain,
  type FakeTransaction,
  inscriptionScript,
  OPEN_LOCK,
  p2pkh,
} from '../../support/protocol/fake-chain.js'
import { ask, submission, treeOf, useServers } from '../../support/server/test-server.js'
import { until } from '../../support/server/waiting.js'
import { chunksInLog } from '../../support/storage/changed-files.js'
import { storedRows } from '../../support/storage/fact-rows.js'

// The command as it is installed: it admits large transactions in a thread of their own.

const cli = useBuiltCli()
const servers = useServers()
const MiB = 1024 * 1024

const chain = new FakeChain()
const coin = (): FakeTransaction =>
  chain.spend({ inputs: [], outputs: [{ satoshis: 5, lockingScript: p2pkh(0) }] })

interface Inscribed {
  transaction: FakeTransaction
  beef: Uint8Array
  body: Uint8Array
}

const PATTERN = Uint8Array.from({ length: 251 }, (_, at) => at)

function inscribed(length: number, from = coin(), contentType = 'application/x-large'): Inscribed {
  const body = new Uint8Array(Buffer.alloc(length, PATTERN))
  // Spending it needs no proof: any push opens it.
  const lockingScript = inscriptionScript({ contentType, body, lock: OPEN_LOCK })
  const outputs = [{ satoshis: 1, lockingScript }]
  const transaction = chain.spend({ inputs: [{ transaction: from, vout: 0 }], outputs })
  return { transaction, beef: beefOf(transaction, { with: [from] }), body }
}

async function started(env: Record<string, string> = {}): Promise<Running & { dataDir: string; at: string }> {
  const dataDir = env.DATA_DIR ?? (await servers.folder())
  const running = cli.start(['serve'], {
    PORT: '0',
    ...treeOf(chain.deployment),
    ...env,
    DATA_DIR: dataDir,
  })
  return { ...running, dataDir, at: await running.url }
}

async function stopped({ child, ended }: Running): Promise<void> {
  child.kill('SIGTERM')
  expect(await ended).toMatchObject({ code: 0, stderr: '' })
}

const ordinals = (beef: Uint8Array) => submission(beef, ['tm_ordinals'])

/** Whether something goes as it should at least once: this process or the host may be held up for as long as all of it takes. */
async function once(goes: () => Promise<boolean>): Promise<boolean> {
  for (let left = 4; left > 0; left--) if (await goes()) return true
  return false
}

/** One for the tests that need no settings, and do not end it. */
let host: Awaited<ReturnType<typeof started>>
beforeAll(async () => {
  host = await started()
})
afterAll(() => stopped(host))

test('readers are answered while a large transaction is admitted, and see it when it is', async () => {
  const small = chain.inscribe({ contentType: 'text/plain', body: utf8('small') })
  expect((await ask(host.at, '/submit', ordinals(beefOf(small)))).status).toBe(200)
  /** How many readers are answered meanwhile. */
  const admitted = async (): Promise<number> => {
    const { transaction, beef } = inscribed(12 * MiB)
    let isAdmitted = false
    const admitting = ask(host.at, '/submit', ordinals(beef)).then((answer) => {
      isAdmitted = true
      return answer
    })
    let answered = 0
    while (!isAdmitted) {
      const { body } = await ask(host.at, `/content/${small.outpoint(0)}`)
      expect(body.toString('utf8')).toBe('small')
      answered++
    }
    expect((await admitting).json).toMatchObject({ tm_ordinals: { outputsToAdmit: [0] } })
    const { status, body } = await ask(host.at, `/content/${transaction.outpoint(0)}:-1`)
    expect({ status, length: body.length }).toEqual({ status: 200, length: 12 * MiB })
    return answered
  }
  // In one thread, hardly any would be: parsing and hashing go on for seconds.
  expect(await once(async () => (await admitted()) > 10)).toBe(true)
})

/** Hashes an item of 2 to the power of `doublings` bytes, over and over; any push opens it. */
const hashing = ({ doublings, hashes }: { doublings: number; hashes: number }): Uint8Array =>
  Uint8Array.from([
    ...[0x75, 0x51],
    ...new Array(doublings).fill([0x76, 0x7e]).flat(),
    ...new Array(hashes).fill([0x76, 0xaa, 0x75]).flat(),
  ])

/** An inscription that nobody has mined, on a coin with such a lock. */
function unproven(lockingScript: Uint8Array, length: number): Uint8Array {
  const from = chain.spend({ inputs: [], outputs: [{ satoshis: 5, lockingScript }] })
  const body = new Uint8Array(length)
  const outputs = [{ satoshis: 1, lockingScript: inscriptionScript({ contentType: 'text/plain', body }) }]
  const transaction = chain.spend({ inputs: [{ transaction: from, vout: 0 }], outputs })
  return beefOf(transaction, { proven: false, with: [from] })
}

test('while a large transaction is verified, others have the turn of the writers', async () => {
  const wentFirst = async (): Promise<boolean> => {
    const order: string[] = []
    const large = unproven(hashing({ doublings: 18, hashes: 100 }), 2 * MiB)
    const sent = ask(host.at, '/submit', ordinals(large)).then((answer) => {
      order.push('large')
      return answer
    })
    for (let left = 3; left > 0; left--) {
      expect((await ask(host.at, '/submit', ordinals(inscribed(10).beef))).status).toBe(200)
      order.push('small')
    }
    expect(await sent).toMatchObject({ status: 200, json: { tm_ordinals: { outputsToAdmit: [0] } } })
    return order.at(-1) === 'large'
  }
  expect(await once(wentFirst)).toBe(true)
})

test('scripts of a small transaction that take long are run, or refused, as short ones are', async () => {
  const long = unproven(hashing({ doublings: 16, hashes: 100 }), 10)
  expect(await ask(host.at, '/submit', ordinals(long))).toMatchObject({
    status: 200,
    json: { tm_ordinals: { outputsToAdmit: [0] } },
  })
  const endless = unproven(hashing({ doublings: 16, hashes: 20_000 }), 10)
  expectError(await ask(host.at, '/submit', ordinals(endless)), {
    status: 400,
    code: 'BAD_BODY',
    overlay: true,
    error: 'the transaction could not be verified: the scripts are too expensive to run',
  })
})

test('a large step of an ordinal that was asked for before is its tip at once', async () => {
  const origin = inscribed(10)
  await ask(host.at, '/submit', ordinals(origin.beef))
  const tip = `/content/${origin.transaction.outpoint(0)}:-1`
  expect((await ask(host.at, tip)).body).toHaveLength(10)
  const next = inscribed(2 * MiB, origin.transaction)
  await ask(host.at, '/submit', ordinals(next.beef))
  expect((await ask(host.at, tip)).body).toHaveLength(2 * MiB)
})

test('what is wrong with a large transaction is answered as with a small one, and what is refused is counted', async () => {
  const host = await started({ CONTENT_TYPES: 'application/x-large', MAX_CONTENT_BYTES: String(3 * MiB) })
  const send = (beef: Uint8Array, topics = ['tm_ordinals']) =>
    ask(host.at, '/submit', submission(beef, topics))
  const spent = inscribed(10)
  await send(spent.beef)
  const first = inscribed(2 * MiB, spent.transaction)
  expect((await send(first.beef)).status).toBe(200)
  const second = inscribed(2 * MiB + 1, spent.transaction)
  expectError(await send(beefOf(second.transaction, { proven: false, with: [spent.transaction] })), {
    status: 409,
    code: 'CONFLICT',
    overlay: true,
    data: { txid: first.transaction.txid },
  })
  expectError(await send(new Uint8Array(2 * MiB)), { status: 400, code: 'BAD_BODY', overlay: true })
  expectError(await send(second.beef, ['tm_other']), { status: 400, code: 'BAD_BODY', overlay: true })
  const { json } = await send(inscribed(4 * MiB).beef)
  expect(json).toMatchObject({ tm_ordinals: { outputsToAdmit: [] } })
  expect((await ask(host.at, '/health')).json).toMatchObject({
    refused: { tm_ordinals: { CONTENT_TOO_LARGE: 1 } },
  })
  // Counted in this thread, whichever has admitted or refused it.
  const samples = (await ask(host.at, '/metrics')).body.toString().split('\n')
  expect(samples).toEqual(
    expect.arrayContaining([
      'minetree_admitted_transactions_total{topic="tm_ordinals"} 2',
      'minetree_refusals_total{topic="tm_ordinals",code="CONTENT_TOO_LARGE"} 1',
      'minetree_conflicts_total 1',
      'minetree_refused_submissions_total{code="BAD_BODY"} 2',
    ]),
  )
  host.child.kill('SIGTERM')
  const { stdout } = await host.ended
  const lines = stdout.trim().split('\n')
  expect(lines.filter((line) => line.includes('CONTENT_TOO_LARGE'))).toHaveLength(1)
})

test.each(sampleOf([300, 1000], 2))(
  'a host that is killed %d milliseconds into a chunk has all of it or nothing, takes it again, and has nothing twice',
  async (milliseconds) => {
    const host = await started()
    const from = coin()
    const first = inscribed(10, from)
    const chunk = inscribed(24 * MiB, first.transaction, 'gw/stream')
    await ask(host.at, '/submit', ordinals(first.beef))
    const cutOff = ask(host.at, '/submit', ordinals(chunk.beef)).catch(() => 'cut off')
    await sleep(milliseconds)
    host.child.kill('SIGKILL')
    await host.ended
    await cutOff
    const chunksOf = (...lengths: number[]): number =>
      lengths.reduce((sum, length) => sum + Math.ceil(length / (256 * 1024)), 0)
    // A fact has four bytes more than the transaction.
    const whole = chunksOf(chunk.transaction.raw.length + 4)
    expect([0, whole]).toContain(chunksInLog(host.dataDir, chunk.transaction.txid))
    const again = await started({ DATA_DIR: host.dataDir })
    expect((await ask(again.at, '/submit', ordinals(chunk.beef))).status).toBe(200)
    const stream = await ask(again.at, `/svc/gateway/stream/${first.transaction.outpoint(0)}`)
    const bodies = [first, chunk].map(({ body }) => body)
    expect(stream.body.equals(Buffer.concat(bodies))).toBe(true)
    await stopped(again)
    expect(chunksInLog(host.dataDir, chunk.transaction.txid)).toBe(whole)
  },
)

test('a host that is asked to stop finishes what it admits', async () => {
  const host = await started()
  const { transaction, beef } = inscribed(24 * MiB)
  const admitted = ask(host.at, '/submit', ordinals(beef))
  const isUnderWay = async (): Promise<boolean> =>
    (await ask(host.at, '/metrics')).body.includes('minetree_submissions_waiting 1\n')
  await until(isUnderWay, 'the submission is under way')
  await stopped(host)
  expect((await admitted).status).toBe(200)
  const rows = storedRows(host.dataDir)
  expect(rows.outputs?.some((row) => row.includes(transaction.txid))).toBe(true)
})
