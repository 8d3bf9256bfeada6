import { P2PKH, PrivateKey, Transaction } from '@bsv/sdk'
import { readBeef } from '../../../../backend/src/graph/read-beef.js'
import { concatBytes, utf8 } from '../../../../backend/src/protocol/bytes.js'
import { runScripts } from '../../../../backend/src/protocol/run-scripts.js'
import { OP } from '../../../../backend/src/protocol/script-walk.js'
import { readTransaction } from '../../../../backend/src/protocol/transaction.js'
import { verifySubmission } from '../../../../src/server/writer/verify-submission.js'
import { expectError } from '../../../support/gateway/expect-error.js'
import { IS_NIGHTLY } from '../../../support/nightly.js'
import {
  beefOf,
  FakeChain,
  type FakeTransaction,
  inscriptionScript,
  OPEN_LOCK,
  p2pkh,
} from '../../../support/protocol/fake-chain.js'
import { encodeTransaction, type FakeOutput } from '../../../support/protocol/raw-transaction.js'
import { type TestServer, useServers } from '../../../support/server/test-server.js'

const servers = useServers()
const chain = new FakeChain()

const INSCRIBED: FakeOutput = {
  satoshis: 1,
  lockingScript: inscriptionScript({ contentType: 'text/plain', body: utf8('x') }),
}

/** A transaction with these unlocking scripts, each for an output with one of these locking scripts of a proven one. */
function spending(scripts: { lock: Uint8Array; unlock: Uint8Array }[], version = 1) {
  const satoshis = 1000
  const funding = chain.spend({ outputs: scripts.map(({ lock }) => ({ satoshis, lockingScript: lock })) })
  const { txid } = funding
  const inputs = scripts.map(({ unlock }, vout) => ({ outpoint: { txid, vout }, unlockingScript: unlock }))
  return unprovenBeef(encodeTransaction({ inputs, outputs: [INSCRIBED], version }), funding)
}

function unprovenBeef(raw: Uint8Array, funding: FakeTransaction): Uint8Array {
  const transaction = readTransaction(raw)
  const { txid } = transaction
  const subject = { txid, raw, transaction, height: 0, outpoint: (vout: number) => `${txid}_${vout}` }
  return beefOf(subject, { proven: false, with: [funding] })
}

const bytes = (...parts: (number | ArrayLike<number>)[]): Uint8Array =>
  concatBytes(...parts.map((part) => Uint8Array.from(typeof part === 'number' ? [part] : part)))
const times = (count: number, ...opcodes: number[]): Uint8Array =>
  Buffer.alloc(count * opcodes.length, Uint8Array.from(opcodes))

/** Whether the SDK lets a transaction of the BEEF through. */
async function sdkVerdict(beef: Uint8Array): Promise<boolean> {
  try {
    return await Transaction.fromBEEF(Array.from(beef)).verify('scripts only')
  } catch {
    return false
  }
}

async function verdict(beef: Uint8Array, maxScriptWork = 300_000_000): Promise<boolean> {
  try {
    await verifySubmission({ beef: readBeef(beef), tracker: undefined, maxScriptWork })
    return true
  } catch {
    return false
  }
}

const [NOTHING, ONE] = [bytes(), bytes(OP.ONE)]
const [EQUAL, CODESEPARATOR, CHECKSIG] = [0x87, 0xab, 0xac]

describe('scripts hold where the SDK says so, and nowhere else:', () => {
  const [DROP, DUP, IF, ENDIF, VERIFY] = [0x75, 0x76, 0x63, 0x68, 0x69]
  const [RETURN, TOALT, FROMALT, CAT] = [0x6a, 0x6b, 0x6c, 0x7e]
  test.each<[string, Uint8Array, Uint8Array]>([
    ['true', ONE, NOTHING],
    ['false', bytes(0), NOTHING],
    ['nothing', NOTHING, NOTHING],
    ['nothing but what unlocks', NOTHING, ONE],
    ['a zero of two bytes', bytes(2, 0, 0), NOTHING],
    ['a negative zero', bytes(1, 0x80), NOTHING],
    ['a push that is cut off', bytes(5, 1), NOTHING],
    ['more than one item', bytes(OP.ONE, OP.ONE), NOTHING],
    ['one item too many to unlock', OPEN_LOCK, bytes(OP.ONE, OP.ONE)],
    ['code that unlocks', bytes(EQUAL), bytes(OP.ONE, DUP)],
    ['an IF that does not end', bytes(OP.ONE, OP.ONE, IF), NOTHING],
    ['an IF that does not end where it unlocks', bytes(OP.ONE, ENDIF), bytes(OP.ONE, IF)],
    ['an ENDIF alone', bytes(OP.ONE, ENDIF), NOTHING],
    ['a branch that is not taken', bytes(0, IF, RETURN, ENDIF, OP.ONE), NOTHING],
    ['a return', bytes(RETURN), NOTHING],
    ['a return on top of true', bytes(OP.ONE, RETURN, CAT, 5), NOTHING],
    ['a return within an IF', bytes(OP.ONE, OP.ONE, IF, RETURN, ENDIF), NOTHING],
    ['a return where it unlocks', ONE, bytes(RETURN)],
    ['the alt stack from where it unlocks', bytes(FROMALT), bytes(OP.ONE, TOALT)],
    ['the alt stack', bytes(OP.ONE, TOALT, FROMALT), NOTHING],
    ['a VERIFY of false', bytes(0, VERIFY, OP.ONE), NOTHING],
    ['CAT', bytes(OP.ONE, OP.ONE, CAT, 2, 1, 1, EQUAL), NOTHING],
    ['too few items', bytes(DROP, OP.ONE), NOTHING],
    ['a signature that is none', p2pkh(1), bytes(1, 1, 1, 1)],
    ['a separator', bytes(CODESEPARATOR, OP.ONE), NOTHING],
    ['an opcode that is none', bytes(OP.ONE, 0xfe), NOTHING],
    ['the inscription', INSCRIBED.lockingScript, NOTHING],
  ])('%s', async (_, lock, unlock) => {
    const verdicts = []
    for (const version of [1, 2]) {
      const beef = spending([{ lock, unlock }], version)
      const sdk = await sdkVerdict(beef)
      verdicts.push({ version, sdk, ours: await verdict(beef) })
    }
    expect(verdicts.map(({ ours }) => ours)).toEqual(verdicts.map(({ sdk }) => sdk))
  })

  test('signatures, each of its own transaction', async () => {
    const key = PrivateKey.fromRandom()
    const lock = Uint8Array.from(new P2PKH().lock(key.toAddress()).toBinary())
    const funding = chain.spend({ outputs: [1, 2].map(() => ({ satoshis: 500, lockingScript: lock })) })
    const signed = new Transaction()
    const sourceTransaction = Transaction.fromBinary(Array.from(funding.raw))
    const unlockingScriptTemplate = new P2PKH().unlock(key)
    for (const sourceOutputIndex of [0, 1])
      signed.addInput({ sourceTransaction, sourceOutputIndex, unlockingScriptTemplate, sequence: 5 })
    signed.addOutput({ satoshis: 999, lockingScript: new P2PKH().lock(key.toAddress()) })
    await signed.sign()
    const raw = Uint8Array.from(signed.toBinary())
    const good = unprovenBeef(raw, funding)
    expect([await sdkVerdict(good), await verdict(good)]).toEqual([true, true])
    // The lock time is what the signatures commit to, too.
    const changed = Uint8Array.from(raw)
    changed.set([1], changed.length - 1)
    const bad = unprovenBeef(changed, funding)
    expect([await sdkVerdict(bad), await verdict(bad)]).toEqual([false, false])
  })

  test('what spends more than it has does not', async () => {
    const poor = chain.spend({ outputs: [OPEN_LOCK] })
    for (const satoshis of [1, 2]) {
      const rich = chain.spend({ inputs: [poor], outputs: [{ satoshis, lockingScript: OPEN_LOCK }] })
      const beef = beefOf(rich, { proven: false, with: [poor] })
      expect([await sdkVerdict(beef), await verdict(beef)]).toEqual([satoshis === 1, satoshis === 1])
    }
  })
})

const taken = async (server: TestServer, beef: Uint8Array): Promise<void> =>
  expect((await server.submit(beef, ['tm_ordinals'])).json).toMatchObject({
    tm_ordinals: { outputsToAdmit: [0] },
  })

/** Scripts that an interpreter would be busy with for minutes or more; each holds where it is run to its end. */
const ENDLESS: [string, { lock: Uint8Array; unlock: Uint8Array }[]][] = [
  // SIG and KEY are there; each of them is checked, and none is right.
  endless('many signatures', bytes(times(4000, 0x6e, CHECKSIG, 0x75), OP.ONE), endlessSignature()),
  endless('items that double', bytes(OP.ONE, times(40, 0x76, 0x7e), 0x82)),
  endless('numbers that are squared', bytes(OP.ONE, 2, 0xff, 0x7f, times(40, 0x76, 0x95), 0x82)),
  endless('an item as long as a number says', bytes(OP.ONE, 4, 0xff, 0xff, 0xff, 0x3f, 0x80, 0x82)),
  endless(
    'many hashes of a long item',
    bytes(OP.ONE, times(22, 0x76, 0x7e), times(5000, 0x76, 0xaa, 0x75), 0x82),
  ),
  endless(
    'signatures that commit to the whole transaction, each hashed again',
    bytes(times(1000, 0x6e, CHECKSIG, 0x75), OP.ONE),
    endlessSignature(0x01),
  ),
  endless(
    'a signature that many keys are tried with',
    bytes(manyKeys(400), 0xae, 0x75, OP.ONE),
    bytes(0, endlessSignature().subarray(0, -34), OP.ONE),
  ),
  endless('opcodes without end', bytes(times(4_000_000, 0x61), OP.ONE)),
]

function endless(name: string, lock: Uint8Array, unlock = NOTHING): (typeof ENDLESS)[number] {
  return [name, [{ lock, unlock }]]
}

function manyKeys(count: number): Uint8Array {
  const key = PrivateKey.fromRandom().toPublicKey().toDER() as number[]
  return bytes(times(count, key.length, ...key), 2, count & 0xff, count >> 8)
}

function endlessSignature(scope = 0x41): Uint8Array {
  const key = PrivateKey.fromRandom()
  const signature = [...(key.sign([1, 2, 3]).toDER() as number[]), scope]
  const point = key.toPublicKey().toDER() as number[]
  return bytes(signature.length, signature, point.length, point)
}

describe('scripts that take too much to run are refused, and what they are part of is not stored:', () => {
  let server: TestServer
  beforeAll(async () => {
    server = await servers.start()
  })

  test.each(ENDLESS)('%s', async (_, scripts) => {
    const before = server.rows()
    const error = expect.stringMatching(/could not be verified: the scripts are too expensive to run$/)
    const refused = { status: 400, code: 'BAD_BODY', overlay: true, error }
    expectError(await server.submit(spending(scripts, 2), ['tm_ordinals']), refused)
    expect(server.rows()).toEqual(before)
    await taken(server, beefOf(chain.inscribe({ contentType: 'text/plain', body: utf8('after') })))
  })
})

test('while such scripts run, others are answered, and have their turn', async () => {
  const [[, scripts = []] = []] = ENDLESS
  const server = await servers.start()
  const note = beefOf(chain.inscribe({ contentType: 'text/plain', body: utf8('note') }))
  let running = 3
  const hostile = Array.from({ length: running }, async () => {
    const { status } = await server.submit(spending(scripts, 2), ['tm_ordinals'])
    running--
    return status
  })
  await taken(server, note)
  let answered = 0
  while (running > 0) {
    expect((await server.ask('/health/live')).status).toBe(200)
    answered++
  }
  // In one thread, none would be: the note itself is taken behind them.
  expect(answered).toBeGreaterThan(0)
  expect(await Promise.all(hostile)).toEqual([400, 400, 400])
})

test('what hashing a transaction for its signatures takes is charged for before it is done', async () => {
  // As long as ten signatures; each of the old digest writes it all again, the others share what was hashed once.
  const outputs = [{ satoshis: 1, lockingScript: new Uint8Array(1_000_000) }]
  const work = (scope: number, checks: number): number => {
    const lock = bytes(times(checks, 0x6e, CHECKSIG, 0x75), OP.ONE)
    const unlockingScript = endlessSignature(scope)
    const outpoint = { txid: 'ab'.repeat(32), vout: 0 }
    const raw = encodeTransaction({ inputs: [{ outpoint, unlockingScript }], outputs, version: 2 })
    const { txid } = readTransaction(raw)
    const spent = [{ satoshis: 5, lockingScript: lock }]
    let units = 0
    for (const step of runScripts([{ txid, raw, spent }], { maxWork: 1e12 })) units += step.units
    return units
  }
  expect(work(0x01, 3) - work(0x01, 1)).toBeGreaterThan(2 * 3 * 1_000_000)
  expect(work(0x41, 3) - work(0x41, 1)).toBeLessThan(2 * 1_000_000)
  expect(work(0x41, 1)).toBeGreaterThan(2 * 1_000_000)
})

test('how much scripts may take is a setting, for all of a submission together', async () => {
  const costly = (inputs: number) =>
    spending(new Array(inputs).fill({ lock: bytes(times(9000, 0x61), OP.ONE), unlock: NOTHING }), 2)
  const server = await servers.start({ MAX_SCRIPT_WORK: '2000000' })
  expect((await server.submit(costly(3), ['tm_ordinals'])).status).toBe(400)
  await taken(server, costly(2))
})

describe('unproven ancestors', () => {
  /** Each spends two outputs of the one before. */
  function dense(length: number): FakeTransaction[] {
    const two = [0, 1].map(() => ({ satoshis: 2, lockingScript: OPEN_LOCK }))
    const all = [chain.spend({ outputs: two })]
    for (let at = 1; at <= length; at++) {
      const [transaction] = all.slice(-1)
      if (transaction === undefined) throw new Error('there is one before each')
      const inputs = [0, 1].map((vout) => ({ transaction, vout }))
      all.push(chain.spend({ inputs, outputs: at < length ? two : [INSCRIBED] }))
    }
    return all
  }

  const beefOfAll = (all: FakeTransaction[]): Uint8Array => {
    const [subject] = all.slice(-1)
    if (subject === undefined) throw new Error('there is none')
    return beefOf(subject, { proven: false, with: all.slice(0, -1), unproven: all.slice(1, -1) })
  }

  test('are each verified once, though there are more ways to them than could be walked', async () => {
    const server = await servers.start()
    await taken(server, beefOfAll(dense(64)))
  })

  test('may be thousands in a row, where the limits allow it', async () => {
    const all = [chain.spend({ outputs: [{ satoshis: 2, lockingScript: OPEN_LOCK }] })]
    const last = IS_NIGHTLY ? 9998 : 2998
    for (let at = 1; at <= last; at++) {
      const [transaction] = all.slice(-1)
      if (transaction === undefined) throw new Error('there is one before each')
      const lockingScript = at < last ? OPEN_LOCK : INSCRIBED.lockingScript
      all.push(chain.move(transaction, 0, lockingScript))
    }
    const limits = { maxBeefDepth: last + 2 }
    const server = await servers.start({ MAX_BEEF_TRANSACTIONS: String(last + 2) }, { limits })
    await taken(server, beefOfAll(all))
  })
})
