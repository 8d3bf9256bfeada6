import { OP, Spend } from '@bsv/sdk'
import { vi } from 'vitest'
import { verifyNameProof } from '../../../src/client/verify-name.js'
import { at, FakeHeaders, proofOf } from '../../support/client/name-proofs.js'
import { FakeChain, OPEN_LOCK } from '../../support/protocol/fake-chain.js'

// Mints in no block, whose coins are locked by scripts that take long to run.

/** The opcodes that the interpreter was let run. */
let ran: number[]

beforeEach(() => {
  ran = []
  const step = Spend.prototype.step
  vi.spyOn(Spend.prototype, 'step').mockImplementation(function (this: Spend) {
    const script = this.context === 'UnlockingScript' ? this.unlockingScript : this.lockingScript
    ran.push(script.chunks[this.programCounter]?.op ?? -1)
    return step.call(this)
  })
})
afterEach(() => void vi.restoreAllMocks())

const KEY = Buffer.from('0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798', 'hex')
/** A DER signature by nobody, for all of the transaction (SIGHASH_ALL, FORKID). */
const SIGNATURE = Buffer.from(`3044${`0220${'11'.repeat(32)}`.repeat(2)}41`, 'hex')

/** Asks for a signature by one of so many keys. */
function multisigLock(keys: number): Uint8Array {
  const count = Buffer.alloc(4)
  count.writeInt32LE(keys)
  const length = keys < 128 ? 1 : 2
  const pushes = [...Array.from({ length: keys }, () => KEY), count.subarray(0, length)]
  const signature = [OP.OP_0, SIGNATURE.length, ...SIGNATURE, OP.OP_1]
  const rest = [...pushes.flatMap((bytes) => [bytes.length, ...bytes]), OP.OP_CHECKMULTISIG]
  return Uint8Array.from([...signature, ...rest])
}

/** The proof of `a`, whose mint is in no block and spends a coin of this lock. */
function proofOver(lockingScript: Uint8Array) {
  const chain = new FakeChain()
  const coin = chain.spend({ inputs: [], outputs: [{ satoshis: 1000, lockingScript }] })
  const mint = chain.mint('a', { funding: [at(coin, 0)] })
  const all = [chain.genesis, coin, mint]
  const proof = proofOf(all, { unproven: [mint] })
  const chainTracker = new FakeHeaders(all)
  return { proof, name: 'a', deployment: chain.deployment, chainTracker }
}

test('a signature by one of many keys, in 546 KB of proof, is refused before it is looked for', async () => {
  const check = proofOver(multisigLock(16_000))
  expect(Math.round(check.proof.length / 1000)).toBeGreaterThanOrEqual(546)
  await expect(verifyNameProof(check)).rejects.toMatchObject({
    ...{ name: 'ProofError', code: 'TOO_COSTLY' },
    message: expect.stringMatching(/^the scripts of [0-9a-f]{64} cost too much to run$/),
  })
  expect(ran.length).toBeGreaterThan(16_000)
  expect(ran).not.toContain(OP.OP_CHECKMULTISIG)
})

test('a signature by one of few keys is looked for', async () => {
  await expect(verifyNameProof(proofOver(multisigLock(20)))).rejects.toMatchObject({ code: 'BAD_SCRIPT' })
  expect(ran).toContain(OP.OP_CHECKMULTISIG)
})

test('scripts end where the work that the caller allows does', async () => {
  const lock = Uint8Array.from([...new Array(5_000).fill(OP.OP_NOP), OP.OP_1])
  const check = proofOver(lock)
  const bounded = verifyNameProof({ ...check, maxScriptWork: 500_000 })
  await expect(bounded).rejects.toMatchObject({ code: 'TOO_COSTLY' })
  const refused = ran.length
  // The coin is the last thing to be spent, and its lock leaves more than one item.
  await expect(verifyNameProof(check)).rejects.toMatchObject({ code: 'BAD_SCRIPT' })
  expect(ran.length).toBeGreaterThan(refused)
})

describe('while scripts run', () => {
  /** Some hundred steps that each take milliseconds. */
  const slow = (): ReturnType<typeof proofOver> => {
    const hash = [OP.OP_DUP, OP.OP_SHA256, OP.OP_DROP]
    const grow = new Array(18).fill([OP.OP_DUP, OP.OP_CAT]).flat()
    return proofOver(Uint8Array.from([OP.OP_1, ...grow, ...new Array(100).fill(hash).flat()]))
  }

  test('the event loop goes on', async () => {
    let turns = 0
    let isOver = false
    const count = (): void => {
      turns++
      if (!isOver) setImmediate(count)
    }
    setImmediate(count)
    await expect(verifyNameProof(slow())).rejects.toMatchObject({ name: 'ProofError' })
    isOver = true
    expect(turns).toBeGreaterThan(5)
  })

  test('the caller can cancel the check', async () => {
    const stop = new AbortController()
    const reason = new Error('never mind')
    setImmediate(() => stop.abort(reason))
    await expect(verifyNameProof({ ...slow(), signal: stop.signal })).rejects.toBe(reason)
    expect(ran.length).toBeLessThan(300)
  })

  test('one that brings little does not wait for one that brings a lot', async () => {
    const ended: string[] = []
    const little = proofOver(OPEN_LOCK)
    await Promise.all([
      verifyNameProof(slow()).catch(() => ended.push('a lot')),
      verifyNameProof(slow()).catch(() => ended.push('a lot')),
      verifyNameProof(little).then(() => ended.push('little')),
    ])
    expect(ended).toEqual(['little', 'a lot', 'a lot'])
  })
})

test('a chain tracker that hangs is left when the caller says so', async () => {
  const [stop, reason] = [new AbortController(), new Error('too late')]
  const chainTracker = {
    isValidRootForHeight: async () => {
      stop.abort(reason)
      return await new Promise<boolean>(() => {})
    },
  }
  const check = { ...proofOver(OPEN_LOCK), chainTracker, signal: stop.signal }
  await expect(verifyNameProof(check)).rejects.toBe(reason)
})
