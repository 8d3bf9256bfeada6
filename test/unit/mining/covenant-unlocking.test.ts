import { Hash, PrivateKey, Script, TransactionSignature } from '@bsv/sdk'
import { ascii, concatBytes } from '../../../backend/src/protocol/bytes.js'
import { followMint, followUnprovenMint, MintError } from '../../../backend/src/protocol/mint.js'
import { readPushes } from '../../../backend/src/protocol/script-walk.js'
import { assemble, type ScriptPart } from '../../../src/mining/covenant.js'
import {
  type CovenantSpend,
  covenantChain,
  covenantMint,
  interpreter,
  RULES,
  refusalByCheck,
  refusalByScript,
} from '../../support/mining/covenant-mints.js'

/** Of the first covenant, which leaves the version free: the second takes no version that allows code. */
const chain = covenantChain({ covenantVersion: 1, difficulty: 1 })
chain.mintAll('ab')
/** The same in every mint, for signatures. */
const FUNDING = [chain.madeUpCoin()]

type Five = [Uint8Array, Uint8Array, Uint8Array, Uint8Array, Uint8Array]

/** A mint of `ac` whose unlocking script is made from the five items. */
function unlockedBy(
  version: number,
  script: (five: Five) => ScriptPart | { raw: Uint8Array },
): CovenantSpend {
  return covenantMint(chain, 'ac', {
    from: chain.node('a'),
    funding: FUNDING,
    version,
    unlockingScript: (right) => {
      const made = script(readPushes(right, { limit: 5 }) as Five)
      return typeof made === 'object' && 'raw' in made ? made.raw : assemble(made)
    },
  })
}

/** Under which rules the script as a whole is accepted. */
function acceptedUnder(spend: CovenantSpend): string[] {
  const all = Object.keys(RULES) as (keyof typeof RULES)[]
  return all.filter((rules) => refusalByScript(spend, rules) === undefined)
}

const PUBLIC_KEY = Uint8Array.from(new PrivateKey(7).toPublicKey().toDER() as number[])

describe('pushes below the five', () => {
  test.each<[string, ScriptPart]>([
    ['one of nothing', '0'],
    ['one of a byte', ascii('x')],
    ['numbers', '1 2 3 -1 16'],
    ['five that look like another mint', [ascii('d'), '0', ascii('lock'), '0', new Uint8Array(300)]],
    ['a thousand', new Array<ScriptPart>(1000).fill('0')],
  ])('are nothing to a block, nor to version 2, nor to the check: %s', (_, below) => {
    const first = unlockedBy(1, (five) => [below, ...five])
    expect(acceptedUnder(first)).toEqual(['block'])
    expect(refusalByCheck(first)).toBeUndefined()
    const second = unlockedBy(2, (five) => [below, ...five])
    expect(acceptedUnder(second)).toEqual(['plain', 'block'])
    expect(refusalByCheck(second)).toBeUndefined()
    for (const mint of [first, second])
      expect(followed(mint)).toEqual({ proven: 'ac', unproven: 'NOT_STRICT' })
  })
})

const TAKEN: [string, (five: Five) => ScriptPart | { raw: Uint8Array }][] = [
  ['an opcode that does nothing', (five) => [...five, 'NOP']],
  ['an item that is joined', ([c, n, l, t, p]) => [c, n, l, t, p.subarray(0, 100), p.subarray(100), 'CAT']],
  ['items in another order, put right', ([c, n, l, t, p]) => [n, c, 'SWAP', p, l, t, 'ROT']],
  ['a character that is reckoned', ([, n, l, t, p]) => ['98 1ADD', n, l, t, p]],
  ['an item that was on the alt stack', ([c, ...rest]) => [c, 'TOALTSTACK 5 FROMALTSTACK', ...rest]],
  ['an item left on the alt stack', (five) => ['7 TOALTSTACK', ...five]],
  ['a branch that is taken', (five) => ['1 IF', ...five, 'ELSE 0 VERIFY ENDIF']],
  ['a branch that is not', (five) => ['0 IF 0 VERIFY 2147483647 NUM2BIN ENDIF', ...five]],
  ['an OP_CODESEPARATOR at its end', (five) => [...five, 'CODESEPARATOR']],
  ['an OP_RETURN at its end', (five) => [...five, 'RETURN']],
  [
    'an OP_RETURN, and after it what is no script',
    (five) => ({ raw: concatBytes(assemble([...five, 'RETURN']), Uint8Array.of(0x68, 0x4d, 0xff)) }),
  ],
  ['a signature that is none', (five) => [...five, '0', PUBLIC_KEY, 'CHECKSIG DROP']],
  ['an opcode of Chronicle', ([c, ...rest]) => [concatBytes(c, ascii('x')), '1 LEFT', ...rest]],
]

/** What is said of a mint that a block holds, and of one that nothing proves: its name, or the code of the error. */
function followed(spend: CovenantSpend): { proven: string; unproven: string } {
  const resultOf = (follow: typeof followMint): string => {
    try {
      return follow(spend).name
    } catch (error) {
      if (!(error instanceof MintError)) throw error
      return error.code
    }
  }
  return { proven: resultOf(followMint), unproven: resultOf(followUnprovenMint) }
}

describe('code in the unlocking script', () => {
  test.each(TAKEN)('counts where a block holds it, which takes version 2: %s', (_, script) => {
    const mint = unlockedBy(2, script)
    expect(acceptedUnder(mint)).toEqual(['plain'])
    expect(refusalByCheck(mint)).toBe('BAD_UNLOCKING')
    expect(followed(mint)).toEqual({ proven: 'ac', unproven: 'NOT_STRICT' })
    for (const version of [0, 1]) expect(acceptedUnder(unlockedBy(version, script))).toEqual([])
  })

  test('may check a signature of the transaction that it stands in', () => {
    const key = new PrivateKey(7)
    /** The pushes after the separator are what is signed for, and the five do not depend on the signature. */
    const signed = (signature: Uint8Array) =>
      unlockedBy(2, (five) => [signature, 'CODESEPARATOR', PUBLIC_KEY, 'CHECKSIGVERIFY', ...five])
    const draft = interpreter(signed(new Uint8Array()))
    const preimage = (satoshis: number) =>
      TransactionSignature.format({
        ...{ ...draft, sourceSatoshis: satoshis, scope: SIGHASH_ALL },
        subscript: new Script(draft.unlockingScript.chunks.slice(2)),
      })
    const signature = (satoshis: number) => {
      const { r, s } = key.sign(Hash.sha256(preimage(satoshis)))
      return Uint8Array.from(new TransactionSignature(r, s, SIGHASH_ALL).toChecksigFormat())
    }
    const right = signed(signature(1))
    expect(acceptedUnder(right)).toEqual(['plain'])
    expect(followed(right)).toEqual({ proven: 'ac', unproven: 'NOT_STRICT' })
    const wrong = signed(signature(2))
    expect(acceptedUnder(wrong)).toEqual([])
  })
})

/** SIGHASH_ALL | SIGHASH_FORKID. */
const SIGHASH_ALL = 0x41
