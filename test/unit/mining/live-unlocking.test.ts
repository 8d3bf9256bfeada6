import { concatBytes, joinBytes } from '../../../backend/src/protocol/bytes.js'
import { followMint, followUnprovenMint, mintPreimage } from '../../../backend/src/protocol/mint.js'
import { parseOutpoint } from '../../../backend/src/protocol/outpoint.js'
import { deploymentOf, PROFILES } from '../../../backend/src/protocol/profile.js'
import { encodeMinimalPush, readPushes } from '../../../backend/src/protocol/script-walk.js'
import { readTransaction } from '../../../backend/src/protocol/transaction.js'
import { assemble } from '../../../src/mining/covenant.js'
import {
  type CovenantSpend,
  RULES,
  refusalByCheck,
  refusalByScript,
} from '../../support/mining/covenant-mints.js'
import { mainnetTransaction, mainnetVectors } from '../../support/protocol/mainnet-vectors.js'
import { encodeTransaction } from '../../support/protocol/raw-transaction.js'

const vectors = mainnetVectors()
const deployment = deploymentOf(PROFILES.mainnet)
const vector = vectors?.mineTree.mints.find(({ txid }) => txid.startsWith('29ad'))

if (vector === undefined || deployment === undefined) {
  test.skip('a mint of the live tree (../shared/vectors/mainnet is absent)', () => undefined)
} else {
  const outpoint = parseOutpoint(vector.spends)
  const output = mainnetTransaction(outpoint.txid).outputs[outpoint.vout]
  if (output === undefined) throw new Error(`no output ${vector.spends}`)
  const spent = { ...output, outpoint }
  const real = mainnetTransaction(vector.txid)
  const [nodeInput, ...funding] = real.inputs
  if (nodeInput === undefined) throw new Error('a mint without inputs')

  /** The real mint, encoded again with changes. Its work is for the seed and holds for any version. */
  const rewritten = (change: {
    version?: number
    lockTime?: number
    unlockingScript: (right: Uint8Array) => Uint8Array
  }): CovenantSpend => {
    const { version = real.version, lockTime = real.lockTime } = change
    const others = funding.map((input) => ({ ...input, outpoint: input }))
    const withNode = (unlockingScript: Uint8Array) => {
      const inputs = [{ ...nodeInput, outpoint, unlockingScript }, ...others]
      return readTransaction(encodeTransaction({ inputs, outputs: real.outputs, version, lockTime }))
    }
    const four = readPushes(nodeInput.unlockingScript, { limit: 4 })
    const preimage = mintPreimage({ transaction: withNode(new Uint8Array()), input: 0, spent })
    const right = joinBytes([...four, preimage].map(encodeMinimalPush))
    return { transaction: withNode(change.unlockingScript(right)), input: 0, spent, deployment }
  }

  /** Of version 2. The live covenant takes some preimages and not others; a lock time is looked for that it takes. */
  const ofVersion2 = (unlockingScript: (right: Uint8Array) => Uint8Array): CovenantSpend => {
    for (let lockTime = 0; lockTime < 64; lockTime++) {
      const mint = rewritten({ version: 2, lockTime, unlockingScript: (right) => right })
      if (refusalByScript(mint) === undefined) return rewritten({ version: 2, lockTime, unlockingScript })
    }
    throw new Error('the covenant takes no version 2')
  }
  const acceptedUnder = (mint: CovenantSpend) =>
    (Object.keys(RULES) as (keyof typeof RULES)[]).filter(
      (rules) => refusalByScript(mint, rules) === undefined,
    )
  const SIXTH = assemble(Uint8Array.of(1, 2, 3))

  describe('a mint of the live tree', () => {
    test('is the real one where nothing is changed', () => {
      const { transaction } = rewritten({ unlockingScript: (right) => right })
      expect(transaction.txid).toBe(real.txid)
    })

    test('may have a sixth push below the five in a block, and is a mint to the check', () => {
      const mint = rewritten({ unlockingScript: (right) => concatBytes(SIXTH, right) })
      expect(acceptedUnder(mint)).toEqual(['block'])
      expect(refusalByCheck(mint)).toBeUndefined()
    })

    test('may have that and code where it is of version 2, and is a mint where a block holds it', () => {
      const pushed = ofVersion2((right) => concatBytes(SIXTH, right))
      expect(acceptedUnder(pushed)).toContain('plain')
      expect(refusalByCheck(pushed)).toBeUndefined()
      const coded = ofVersion2((right) => concatBytes(assemble('2 3 ADD'), right, assemble('NOP')))
      expect(acceptedUnder(coded)).toEqual(['plain'])
      expect(refusalByCheck(coded)).toBe('BAD_UNLOCKING')
      expect(followMint(coded)).toMatchObject({ name: followMint(pushed).name })
      for (const mint of [pushed, coded])
        expect(() => followUnprovenMint(mint)).toThrow(expect.objectContaining({ code: 'NOT_STRICT' }))
    })

    test('may not have a push above them, or code where it is of version 1', () => {
      for (const unlockingScript of [
        (right: Uint8Array) => concatBytes(right, SIXTH),
        (right: Uint8Array) => concatBytes(right, assemble('NOP')),
      ]) {
        const mint = rewritten({ version: 1, unlockingScript })
        expect(acceptedUnder(mint)).toEqual([])
        expect(refusalByCheck(mint)).toBe('BAD_UNLOCKING')
      }
    })
  })
}
