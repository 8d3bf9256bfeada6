import fc from 'fast-check'
import { concatBytes, joinBytes } from '../../../backend/src/protocol/bytes.js'
import {
  claim,
  decodeMineNode,
  encodeMineNode,
  type MineNode,
  MineNodeError,
  NAME_CHARACTERS,
  UNCLAIMED,
} from '../../../backend/src/protocol/mine-node.js'
import { readMintOutputs } from '../../../backend/src/protocol/mint.js'
import { readMintUnlocking } from '../../../backend/src/protocol/mint-unlocking.js'
import { readPushes } from '../../../backend/src/protocol/script-walk.js'
import { readTransaction } from '../../../backend/src/protocol/transaction.js'
import { assemble, type ScriptPart } from '../../../src/mining/covenant.js'
import {
  type CovenantSpend,
  covenantChain,
  covenantMint,
  refusalByCheck,
  refusalByScript,
} from '../../support/mining/covenant-mints.js'
import { rounds } from '../../support/nightly.js'
import { bytes, bytesOf, edits } from '../../support/protocol/arbitraries.js'
import { changed, pushing } from '../../support/protocol/broken-mints.js'
import {
  type FakeChain,
  type FakeOutput,
  type MintOverrides,
  p2pkh,
} from '../../support/protocol/fake-chain.js'

const plain = covenantChain({ difficulty: 2 })
const withTld = covenantChain({ difficulty: 1, tld: 'test', nameMarker: 'm' })
/** The one that transactions of version 2 can spend, and so unlocking scripts with code. */
const first = covenantChain({ covenantVersion: 1, tld: 'test' })
/** As long as names get where `.test` is put behind them. */
const DEEPEST = 'deep-'.repeat(14)
withTld.mintAll(DEEPEST)
first.mintAll(DEEPEST)
plain.mintAll(`${DEEPEST}deep-`)

/** For thousands of scripts, in milliseconds: machines that run this may be slow. */
const PATIENCE = 300_000

/** Mints that are tried; what is expected of their variety is a share of it. */
const RUNS = rounds(200, 2000)
/** The same mints each time, so that their variety is; `RUNS=10000 SEED=7` tries others. */
const SEED = Number(process.env.SEED ?? 1)

/** What is done to a mint, or to its transaction afterwards. */
interface Change {
  overrides?: (chain: FakeChain, domain: string) => MintOverrides
  transaction?: (raw: Uint8Array) => Uint8Array
}

const outputsAs = (outputs: (all: FakeOutput[]) => FakeOutput[]): Change => ({
  overrides: () => ({ outputs }),
})
const always = (overrides: MintOverrides): Change => ({ overrides: () => overrides })

/** Leaves a mint what it is: all of it is the miner's to choose. */
const choices: fc.Arbitrary<Change> = fc.oneof(
  fc.record({ ownerLock: bytes(400) }).map(always),
  fc
    .record({ version: fc.constantFrom(1, 2, 3, 0xffffffff), lockTime: fc.nat(), sequence: fc.nat() })
    .map(always),
  fc.constantFrom(0, 1).map((nodeInputPosition) => always({ nodeInputPosition })),
  fc
    .array(fc.record({ satoshis: fc.nat(), lockingScript: bytes(80) }), { maxLength: 3 })
    .map((trailing) => always({ trailing })),
)

const anyVout = fc.nat({ max: 3 })

const outputChanges: fc.Arbitrary<Change> = fc.oneof(
  fc
    .tuple(anyVout, edits)
    .map(([vout, edit]) =>
      always(changed(vout, (output) => ({ ...output, lockingScript: edit(output.lockingScript) }))),
    ),
  fc
    .tuple(anyVout, fc.constantFrom(0, 1, 2, 256))
    .map(([vout, satoshis]) => always(changed(vout, (output) => ({ ...output, satoshis })))),
  fc
    .tuple(anyVout, anyVout)
    .map(([a, b]) =>
      outputsAs((all) => all.map((output, i) => all[i === a ? b : i === b ? a : i] ?? output)),
    ),
  anyVout.map((vout) => outputsAs((all) => all.filter((_, i) => i !== vout))),
  anyVout.map((vout) => outputsAs((all) => [...all.slice(0, vout), ...all.slice(vout - 1)])),
  anyVout.map((vout) => outputsAs((all) => all.toSpliced(vout, 0, { satoshis: 1, lockingScript: p2pkh(9) }))),
)

const claims = fc
  .subarray([...NAME_CHARACTERS])
  .map((characters) => characters.reduce((all, each) => claim(all, each.charCodeAt(0)), UNCLAIMED))
const otherStates: fc.Arbitrary<Partial<MineNode>> = fc.oneof(
  fc.record({ claimed: claims }),
  fc.record({ domain: fc.string({ unit: fc.constantFrom(...NAME_CHARACTERS), maxLength: 76 }) }),
  fc.record({ seed: bytesOf(32) }),
  fc.record({ seed: fc.constant(new Uint8Array()) }),
  fc.record({ genesis: fc.constant(undefined) }),
)

const restated: fc.Arbitrary<Change> = fc
  .tuple(fc.constantFrom(0, 1), otherStates)
  .map(([vout, state]) =>
    always(changed(vout, (output) => ({ ...output, lockingScript: withState(output.lockingScript, state) }))),
  )

/** A node's script with parts of its state replaced; a script that another change made none of a node as it is. */
function withState(lockingScript: Uint8Array, state: Partial<MineNode>): Uint8Array {
  try {
    return encodeMineNode({ ...decodeMineNode(lockingScript), ...state })
  } catch (error) {
    if (error instanceof MineNodeError) return lockingScript
    throw error
  }
}

/**
 * Spends a node of another state than the live one, which is then the state that all else fits. Only states that a
 * genuine node can have: of others a script knows nothing, and test/unit/mining/hostile-roots.test.ts has them.
 */
const otherNodes: fc.Arbitrary<Change> = fc
  .record({
    claimed: claims,
    domain: fc.string({ unit: fc.constantFrom(...NAME_CHARACTERS), maxLength: 75 }),
    seed: bytesOf(32),
  })
  .map((state) => ({
    overrides: (chain, domain) => {
      const node = chain.node(domain)
      const { genesis } = chain.deployment
      return { from: { ...node, lockingScript: withState(node.lockingScript, { genesis, ...state }) } }
    },
  }))

/** Spends a node with the work for a seed that it had, or will have. */
const staleWork: fc.Arbitrary<Change> = bytes(6).map((nonce) => always({ nonce }))

const pushChanges: fc.Arbitrary<Change> = fc.oneof(
  fc.tuple(fc.nat({ max: 4 }), edits).map(([push, edit]) =>
    always({
      unlockingScript: (script) => {
        const original = readPushes(script, { limit: 5 })[push] ?? new Uint8Array()
        return pushing({ [push]: edit(original) }).unlockingScript?.(script) ?? script
      },
    }),
  ),
  fc.tuple(fc.nat({ max: 4 }), fc.nat({ max: 4 })).map(([a, b]) =>
    always({
      unlockingScript: (script) => {
        const pushes = readPushes(script, { limit: 5 })
        const swapped = { [a]: pushes[b] ?? script, [b]: pushes[a] ?? script }
        return pushing(swapped).unlockingScript?.(script) ?? script
      },
    }),
  ),
  fc.nat({ max: 255 }).map((code) => always(pushing({ 0: Uint8Array.of(code) }))),
  fc.nat({ max: 255 }).map((type) =>
    always({
      unlocking: (pushes) => ({
        ...pushes,
        preimage: concatBytes(pushes.preimage.subarray(0, -4), Uint8Array.of(type, 0, 0, 0)),
      }),
    }),
  ),
  edits.map((edit) => always({ unlockingScript: edit })),
  fc.constant(
    always({
      unlockingScript: (script) =>
        joinBytes(
          readPushes(script, { limit: 5 }).map((push) =>
            concatBytes(Uint8Array.of(0x4e, push.length & 0xff, push.length >> 8, 0, 0), push),
          ),
        ),
    }),
  ),
)

/** Words that need nothing of the stack, and leave nothing above what is there. */
const idle: fc.Arbitrary<ScriptPart> = fc.oneof(
  fc.constantFrom(
    'NOP',
    '0 DROP',
    '1 IF ELSE ENDIF',
    '0 IF RETURN ENDIF',
    'CODESEPARATOR',
    'DEPTH TOALTSTACK',
  ),
  bytes(40).map((junk): ScriptPart => [junk, 'HASH256 DROP']),
)
/** Words of which some need what is not there, or leave what must not be. */
const reckless = fc.constantFrom(
  ...['1 IF', 'ENDIF', 'RETURN', 'VERIFY', 'DUP', 'DROP', 'SWAP', 'CAT', 'FROMALTSTACK', 'RESERVED', '1ADD'],
)
/** Code that pushes some bytes. */
const computing = fc.constantFrom<(item: Uint8Array) => ScriptPart>(
  (item) => item,
  (item) => [item.subarray(0, item.length >> 1), item.subarray(item.length >> 1), 'CAT'],
  (item) => [item, '0 SPLIT NIP'],
  (item) => [item, 'TOALTSTACK 7 FROMALTSTACK NIP'],
  (item) => ['0 NOTIF', item, 'ELSE 0 VERIFY ENDIF'],
  (item) => [item, 'DUP EQUALVERIFY', item],
)

/** Other things on the stack below the five items. */
const below: fc.Arbitrary<Change> = fc
  .array(fc.oneof(bytes(20), fc.constantFrom('0', '1', '-1', '1000')), { minLength: 1, maxLength: 6 })
  .map((junk) => always({ unlockingScript: (script) => concatBytes(assemble(junk), script) }))

/** Code that computes the five items, or does not. */
const coded: fc.Arbitrary<Change> = fc
  .record({
    version: fc.constantFrom(1, 2, 2, 2, 0xffffffff),
    items: fc.array(computing, { minLength: 5, maxLength: 5 }),
    between: fc.array(idle, { minLength: 5, maxLength: 5 }),
    last: fc.oneof({ weight: 3, arbitrary: idle }, { weight: 1, arbitrary: reckless }),
  })
  .map(({ version, items, between, last }) =>
    always({
      version,
      unlockingScript: (script) =>
        assemble([
          ...readPushes(script, { limit: 5 }).map((push, i) => [
            between[i] ?? 'NOP',
            items[i]?.(push) ?? push,
          ]),
          last,
        ]),
    }),
  )

const changes: fc.Arbitrary<Change> = fc.oneof(
  below,
  coded,
  choices,
  outputChanges,
  restated,
  otherNodes,
  staleWork,
  fc.constant(always({ badWork: true })),
  fc.nat({ max: 127 }).map((code) => always({ character: String.fromCharCode(code) })),
  pushChanges,
  fc.tuple(fc.nat(), fc.integer({ min: 1, max: 255 })).map(
    ([at, flip]): Change => ({
      transaction: (raw) => raw.map((byte, i) => (i === at % raw.length ? byte ^ flip : byte)),
    }),
  ),
)

/** One override after another: what is a function, applied to what the one before made. */
function both(a: MintOverrides, b: MintOverrides): MintOverrides {
  return {
    ...a,
    ...b,
    outputs: (all) => (b.outputs ?? same)((a.outputs ?? same)(all)),
    unlocking: (pushes) => (b.unlocking ?? same)((a.unlocking ?? same)(pushes)),
    unlockingScript: (script) => (b.unlockingScript ?? same)((a.unlockingScript ?? same)(script)),
  }
}

function same<Value>(value: Value): Value {
  return value
}

/** The changed spend; undefined where what is left is no transaction. */
function spendOf(chain: FakeChain, name: string, todo: Change[]): CovenantSpend | undefined {
  const domain = name.slice(0, -1)
  let overrides: MintOverrides = { from: chain.node(domain) }
  for (const change of todo) overrides = both(overrides, change.overrides?.(chain, domain) ?? {})
  const mint = covenantMint(chain, name, overrides)
  const raw = todo.reduce((bytes, change) => change.transaction?.(bytes) ?? bytes, mint.transaction.raw)
  try {
    return { ...mint, transaction: readTransaction(raw) }
  } catch {
    return undefined
  }
}

function isPushed({ transaction, input }: CovenantSpend): boolean {
  return readMintUnlocking(transaction.inputs[input]?.unlockingScript ?? new Uint8Array()) !== undefined
}

describe('the check and the script', () => {
  const verdicts = { accepted: 0, refused: 0, unreadable: 0, coded: 0 }

  test(
    'say the same of any mint, whatever was changed',
    () => {
      const domains = fc.constantFrom('', 'd', 'deep', DEEPEST.slice(0, -1), `${DEEPEST}deep`)
      const cases = fc.tuple(
        fc.constantFrom(plain, withTld, first),
        domains,
        fc.constantFrom('a', 'z', '0', '-', 'w'),
        fc.array(changes, { minLength: 1, maxLength: 2 }),
      )
      fc.assert(
        fc.property(cases, ([chain, wanted, character, todo]) => {
          const domain = wanted.length >= DEEPEST.length && chain !== plain ? DEEPEST.slice(0, -1) : wanted
          const spend = spendOf(chain, domain + character, todo)
          if (spend === undefined) {
            verdicts.unreadable++
            return
          }
          const refused = refusalByCheck(spend) !== undefined
          verdicts[refused ? 'refused' : 'accepted']++
          // A block may have junk below the five items, and version 2 both that and code.
          const accepting = (['block', 'plain'] as const).find((rules) => !refusalByScript(spend, rules))
          if (!isPushed(spend) && accepting !== undefined) {
            // Code is run by no check; what the script lets through can be read from its outputs.
            verdicts.coded++
            expect(() => readMintOutputs(spend)).not.toThrow()
          } else expect(accepting === undefined).toBe(refused)
        }),
        { seed: SEED, numRuns: RUNS, endOnFailure: true },
      )
    },
    PATIENCE,
  )

  test('did not agree for want of variety', () => {
    expect(verdicts.accepted).toBeGreaterThan(RUNS / 20)
    expect(verdicts.refused).toBeGreaterThan(RUNS / 4)
    expect(verdicts.unreadable).toBeLessThan(RUNS / 20)
    expect(verdicts.coded).toBeGreaterThan(RUNS / 400)
  })
})
