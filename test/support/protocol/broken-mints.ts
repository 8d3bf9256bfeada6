import { ascii, concatBytes, utf8 } from '../../../backend/src/protocol/bytes.js'
import { encodeEnvelope } from '../../../backend/src/protocol/inscription.js'
import {
  claim,
  decodeMineNode,
  encodeMineNode,
  type MineNode,
} from '../../../backend/src/protocol/mine-node.js'
import {
  encodeNameOutput,
  meetsDifficulty,
  mintPreimage,
  ownerCommitment,
  proofOfWork,
} from '../../../backend/src/protocol/mint.js'
import { encodeMinimalPush, readPushes } from '../../../backend/src/protocol/script-walk.js'
import { sha256 } from '../../../backend/src/protocol/transaction.js'
import type { CovenantPart } from '../../../src/mining/covenant.js'
import { type FakeChain, type FakeNode, type FakeOutput, type MintOverrides, p2pkh } from './fake-chain.js'

/** A mint with one rule broken, and all that depends on it still fitting. */
export interface BrokenMint {
  has: string
  /** What `checkMint` says of it, and of which output. */
  code: string
  /**
   * Where our covenant refuses it: a part, or `unlocking` for a rule of pushes that the interpreter holds before any
   * script runs. `none`: no script can tell, and lineage must.
   */
  part: CovenantPart | 'unlocking' | 'none'
  overrides: MintOverrides
}

const OTHER_CODE = { code: ascii('another covenant') }
const DECOY = encodeEnvelope({ contentType: 'application/name-claim', body: utf8('ac') })

/** Every rule of a mint broken alone, each in a mint of `ac` on a chain where `ab` was minted. */
export function brokenMints(chain: FakeChain): BrokenMint[] {
  return [...brokenPushes(chain), ...brokenPreimages(chain), ...brokenOutputs(chain), ...brokenNodes(chain)]
}

function brokenPushes(chain: FakeChain): BrokenMint[] {
  const append = (...bytes: number[]): MintOverrides => ({
    unlockingScript: (script) => concatBytes(script, Uint8Array.from(bytes)),
  })
  const count: Array<[string, BrokenMint['part'], MintOverrides]> = [
    ['no unlocking script', 'preimage', { unlockingScript: () => new Uint8Array() }],
    ['four pushes', 'character', { unlockingScript: (script) => script.subarray(2) }],
    ['a push after the five', 'preimage', append(0)],
    ['code after the pushes', 'unlocking', append(0x61)],
    ['a push that breaks off', 'unlocking', append(1)],
  ]
  const characters: Array<[string, string, MintOverrides]> = [
    ['a character that names do not have', 'BAD_CHARACTER', { character: 'C' }],
    ['a character of none', 'BAD_CHARACTER', { character: '\0' }],
    ['a dot', 'BAD_CHARACTER', { character: '.' }],
    ['two characters', 'BAD_CHARACTER', pushing({ 0: ascii('cc') })],
    ['no character', 'BAD_CHARACTER', pushing({ 0: new Uint8Array() })],
    ['a character that was claimed', 'CLAIMED', { character: 'b' }],
  ]
  const work: Array<[string, MintOverrides]> = [
    ['too little work', { badWork: true }],
    ['a nonce other than the one worked for', pushing({ 1: nonceWithoutWork(chain) })],
    ['another character than the outputs', pushing({ 0: characterWithoutWork(chain) })],
    ['work for another seed', { nonce: nonceForEmptySeedOnly(chain) }],
  ]
  const decoyed = concatBytes(p2pkh(1), DECOY)
  const owners: Array<[string, MintOverrides]> = [
    ['an owner lock other than the output', pushing({ 2: p2pkh(2) })],
    ['an envelope in the owner lock instead of the covenant’s', pushing({ 2: decoyed })],
  ]
  const trailing: Array<[string, MintOverrides]> = [
    ['a trailing push of nothing', pushing({ 3: new Uint8Array() })],
    ['a trailing push of something else', pushing({ 3: ascii('other') })],
  ]
  return [
    ...count.map(([has, part, overrides]) => ({ has, code: 'BAD_UNLOCKING', part, overrides })),
    ...characters.map(([has, code, overrides]) => ({ has, code, part: 'character' as const, overrides })),
    ...work.map(([has, overrides]) => ({ has, code: 'BAD_WORK', part: 'work' as const, overrides })),
    ...owners.map(([has, overrides]) =>
      isBound(chain)
        ? { has, code: 'BAD_NONCE', part: 'work' as const, overrides }
        : { has, code: 'BAD_OUTPUT 2', part: 'outputs' as const, overrides },
    ),
    ...trailing.map(([has, overrides]) => ({
      has,
      code: 'BAD_UNLOCKING',
      part: 'outputs' as const,
      overrides,
    })),
    ...(isBound(chain) ? unboundMints(chain) : []),
  ]
}

/** Whether the chain's covenant binds work to owner and node, and version and lock time (version 2). */
function isBound(chain: FakeChain): boolean {
  return chain.deployment.covenantVersion === 2
}

/** What a covenant of version 2 refuses, and one of version 1 takes. */
export function unboundMints(chain: FakeChain): BrokenMint[] {
  const ownerLock = p2pkh(1)
  const commitment = (domain: string, lock = ownerLock): Uint8Array =>
    sha256(concatBytes(ascii(domain), sha256(lock))).subarray(0, 8)
  const right = commitment('a')
  const after = (...start: Uint8Array[]): MintOverrides => {
    const seed = liveSeed(chain)
    const nonce = firstNonce((tail) =>
      works(chain, { seed, character: 'c', nonce: concatBytes(...start, tail) }),
    )
    return { nonce: concatBytes(...start, nonce) }
  }
  const nonces: Array<[string, MintOverrides]> = [
    ['a nonce for another owner', after(commitment('a', p2pkh(2)))],
    ['a nonce for the owner, and another lock', { ...after(right), ownerLock: p2pkh(2) }],
    ['a nonce for the same owner at the child with the same seed', after(commitment('ab'))],
    ['a nonce for the same owner at the root', after(commitment(''))],
    ['a nonce for the name instead of the node', after(commitment('ac'))],
    ['a nonce for both hashed together', after(sha256(concatBytes(ascii('a'), ownerLock)).subarray(0, 8))],
    ['a nonce for the lock alone', after(sha256(ownerLock).subarray(0, 8))],
    ['a nonce that commits behind its start', after(Uint8Array.of(0), right)],
    ['a nonce that ends with the commitment', { nonce: workedBefore(chain, right) }],
    ['a nonce with a bit of it changed', after(right.map((byte, i) => (i === 7 ? byte ^ 1 : byte)))],
    ['a nonce with seven bytes of the commitment', after(right.subarray(0, 7))],
    ['a nonce of two bytes', after()],
  ]
  type Unbound = [string, string, BrokenMint['part'], MintOverrides]
  const transaction: Unbound[] = [
    ...[0, 2, 3, 0x101, 0x80000000, 0x80000001, 0xffffffff].map(
      (version): Unbound => [`the version ${version}`, 'BAD_VERSION', 'split', { version }],
    ),
    ...[1, 799_999, 500_000_000, 0x01000000, 0x80000000, 0xffffffff].map(
      (lockTime): Unbound => [
        `the lock time ${lockTime}`,
        'BAD_LOCK_TIME',
        'state',
        { lockTime, sequence: 0 },
      ],
    ),
    ['a lock time that every input ignores', 'BAD_LOCK_TIME', 'state', { lockTime: 1 }],
  ]
  return [
    ...nonces.map(([has, overrides]) => ({ has, code: 'BAD_NONCE', part: 'work' as const, overrides })),
    ...transaction.map(([has, code, part, overrides]) => ({ has, code, part, overrides })),
  ]
}

/** A nonce with work, the commitment at its end. */
function workedBefore(chain: FakeChain, commitment: Uint8Array): Uint8Array {
  const seed = liveSeed(chain)
  const start = firstNonce((head) =>
    works(chain, { seed, character: 'c', nonce: concatBytes(head, commitment) }),
  )
  return concatBytes(start, commitment)
}

function brokenPreimages(chain: FakeChain): BrokenMint[] {
  const changing = (change: (preimage: Uint8Array) => Uint8Array): MintOverrides => ({
    unlocking: (pushes) => ({ ...pushes, preimage: change(pushes.preimage) }),
  })
  /** A byte changed, counted from the end where it is negative. */
  const flipped = (at: number): MintOverrides =>
    changing((preimage) =>
      preimage.map((byte, i) => (i === (at + preimage.length) % preimage.length ? byte ^ 1 : byte)),
    )
  const fields: Array<[string, MintOverrides]> = [
    ['of nothing', changing(() => new Uint8Array())],
    ['of another input', changing(() => preimageOfAnother(chain))],
    ['with something after it', changing((preimage) => concatBytes(preimage, Uint8Array.of(0)))],
    ['with another version', flipped(0)],
    ['with a hash of outpoints', flipped(4)],
    ['with a hash of sequences', flipped(36)],
    ['with another outpoint', flipped(68)],
    ['with another length of the script', flipped(104)],
    ['with other code', flipped(110)],
    ['with another state', flipped(-58)],
    ['with another value', flipped(-52)],
    ['with another sequence', flipped(-44)],
    ['with another hash of outputs', flipped(-40)],
    ['with another lock time', flipped(-8)],
    ['with another sighash type', flipped(-4)],
  ]
  return fields.map(([has, overrides]) => ({
    has: `a preimage ${has}`,
    // With other code or another state, what `checkMint` reads from the preimage alone is another node.
    code: 'BAD_UNLOCKING',
    part: 'preimage',
    overrides,
  }))
}

function brokenOutputs(chain: FakeChain): BrokenMint[] {
  const parent = decodeMineNode(chain.node('a').lockingScript)
  const { outpoint } = chain.node('a')
  const cases: Array<[string, number, MintOverrides]> = [
    ['no outputs', 0, { outputs: () => [] }],
    ['one output', 1, { outputs: (all) => all.slice(0, 1) }],
    ['no name', 2, { outputs: (all) => all.slice(0, 2) }],
    ['the nodes swapped', 0, { outputs: ([a, b, ...rest]) => [b, a, ...rest].filter(isOutput) }],
    ['the child and the name swapped', 1, { outputs: ([a, b, c]) => [a, c, b].filter(isOutput) }],
    ['an output before them', 0, { outputs: (all) => [{ satoshis: 1, lockingScript: p2pkh(1) }, ...all] }],
    ...[0, 1, 2].flatMap(
      (vout): Array<[string, number, MintOverrides]> => [
        [`2 satoshis in output ${vout}`, vout, changed(vout, (output) => ({ ...output, satoshis: 2 }))],
        [`no satoshis in output ${vout}`, vout, changed(vout, (output) => ({ ...output, satoshis: 0 }))],
        [`another script in output ${vout}`, vout, lockedBy(vout, p2pkh(1))],
      ],
    ),
    [
      'a restated node with a bit too many',
      0,
      restated(0, ({ claimed }) => ({ claimed: claim(claimed, 0x7a) })),
    ],
    ['a restated node with the bit not set', 0, restated(0, () => ({ claimed: parent.claimed }))],
    ['a restated node of another domain', 0, restated(0, () => ({ domain: 'b' }))],
    ['a restated node with the seed of before', 0, restated(0, () => ({ seed: parent.seed }))],
    ['a restated node of another tree', 0, restated(0, () => ({ genesis: outpoint }))],
    ['a restated node without its tree', 0, restated(0, () => ({ genesis: undefined }))],
    ['a restated node with other code', 0, restated(0, () => OTHER_CODE)],
    ['a child with a bit set', 1, restated(1, ({ claimed }) => ({ claimed: claim(claimed, 0x61) }))],
    ['a child of another domain', 1, restated(1, () => ({ domain: 'ad' }))],
    ['a child with another seed', 1, restated(1, () => ({ seed: new Uint8Array(32) }))],
    ['a child of another tree', 1, restated(1, () => ({ genesis: outpoint }))],
    ['a child with other code', 1, restated(1, () => OTHER_CODE)],
    ['another name in the name output', 2, lockedBy(2, nameScript(chain, 'ad'))],
    ['the name for another owner', 2, lockedBy(2, nameScript(chain, 'ac', p2pkh(2)))],
  ]
  return cases.map(([has, vout, overrides]) => ({
    has,
    code: `BAD_OUTPUT ${vout}`,
    part: 'outputs',
    overrides,
  }))
}

/** Nodes that are none of the tree. Of most, a script cannot know, or it goes by what the node says. */
function brokenNodes(chain: FakeChain): BrokenMint[] {
  const { genesis } = chain.deployment
  const rootless = { genesis: undefined, seed: new Uint8Array() }
  const seeded = { ...nodeWith(chain, { genesis: undefined }), outpoint: genesis }
  const other = { ...genesis, vout: 1 }
  const otherTree = nodeWith(chain, { genesis: other })
  const otherRoot = nodeWith(chain, rootless)
  // A nonce of version 2 is for the tree that the node says it is of.
  const part = chain.deployment.covenantVersion === 2 ? 'work' : 'outputs'
  return [
    { has: 'a node of another tree', code: 'OTHER_TREE', part, overrides: { from: otherTree } },
    { has: 'a root at another outpoint', code: 'OTHER_TREE', part, overrides: { from: otherRoot } },
    ...[
      { has: 'a node of another tree, and the work for that', from: otherTree, nonceFor: other },
      {
        has: 'a root at another outpoint, and the work for that',
        from: otherRoot,
        nonceFor: otherRoot.outpoint,
      },
    ].map(({ has, ...overrides }) => ({ has, code: 'OTHER_TREE', part: 'outputs' as const, overrides })),
    { has: 'the root with a seed', code: 'OTHER_TREE', part: 'none', overrides: { from: seeded } },
    {
      has: 'a node of 2 satoshis',
      code: 'NOT_A_NODE',
      part: 'none',
      overrides: { from: nodeWith(chain, {}, 2) },
    },
  ]
}

/** The live node of `a` with parts of its state replaced; what stays fits. */
export function nodeWith(chain: FakeChain, parts: Partial<MineNode>, satoshis = 1): FakeNode {
  const node = chain.node('a')
  const lockingScript = encodeMineNode({ ...decodeMineNode(node.lockingScript), ...parts })
  return { ...node, satoshis, lockingScript }
}

/** Changes one output, and leaves the rest. */
export function changed(vout: number, change: (output: FakeOutput) => FakeOutput): MintOverrides {
  return { outputs: (outputs) => outputs.map((output, i) => (i === vout ? change(output) : output)) }
}

const lockedBy = (vout: number, lockingScript: Uint8Array): MintOverrides =>
  changed(vout, (output) => ({ ...output, lockingScript }))

function restated(vout: number, change: (node: MineNode) => Partial<MineNode>): MintOverrides {
  return changed(vout, (output) => {
    const node = decodeMineNode(output.lockingScript)
    return { ...output, lockingScript: encodeMineNode({ ...node, ...change(node) }) }
  })
}

/** Replaces pushes of the unlocking script, by their position. */
export function pushing(replaced: Readonly<Record<number, Uint8Array>>): MintOverrides {
  return {
    unlockingScript: (script) =>
      concatBytes(
        ...readPushes(script, { limit: 5 }).map((push, i) => encodeMinimalPush(replaced[i] ?? push)),
      ),
  }
}

function nameScript(chain: FakeChain, name: string, ownerLock = p2pkh(1)): Uint8Array {
  return encodeNameOutput({ ownerLock, name, deployment: chain.deployment })
}

function isOutput(output: FakeOutput | undefined): output is FakeOutput {
  return output !== undefined
}

function works(
  chain: FakeChain,
  solution: { seed: Uint8Array; character: string; nonce: Uint8Array },
): boolean {
  return meetsDifficulty(proofOfWork(solution), chain.deployment.difficulty)
}

function liveSeed(chain: FakeChain): Uint8Array {
  return decodeMineNode(chain.node('a').lockingScript).seed
}

function firstNonce(wanted: (nonce: Uint8Array) => boolean): Uint8Array {
  for (let i = 0; i < 65536; i++) {
    const nonce = Uint8Array.of(i & 0xff, i >> 8)
    if (wanted(nonce)) return nonce
  }
  throw new Error('no such nonce')
}

function nonceWithoutWork(chain: FakeChain): Uint8Array {
  return committed(chain, (nonce) => !works(chain, { seed: liveSeed(chain), character: 'c', nonce }))
}

function nonceForEmptySeedOnly(chain: FakeChain): Uint8Array {
  const [seed, none] = [liveSeed(chain), new Uint8Array()]
  return committed(
    chain,
    (nonce) =>
      works(chain, { seed: none, character: 'c', nonce }) && !works(chain, { seed, character: 'c', nonce }),
  )
}

/** A nonce for the owner of an unbroken mint at the node of `a`. */
function committed(chain: FakeChain, wanted: (nonce: Uint8Array) => boolean): Uint8Array {
  const { deployment } = chain
  const start = ownerCommitment({ domain: 'a', ownerLock: p2pkh(1), deployment })
  return concatBytes(
    start,
    firstNonce((tail) => wanted(concatBytes(start, tail))),
  )
}

/** A character that is free but for which the nonce of an unbroken mint is no solution. */
function characterWithoutWork(chain: FakeChain): Uint8Array {
  const { transaction } = chain.mint('ac', { from: chain.node('a') })
  const [, nonce] = readPushes(transaction.inputs[0]?.unlockingScript ?? new Uint8Array(), { limit: 2 })
  if (nonce === undefined) throw new Error('no nonce')
  const other = [...'defghij'].find((character) => !works(chain, { seed: liveSeed(chain), character, nonce }))
  return ascii(other ?? '')
}

function preimageOfAnother(chain: FakeChain): Uint8Array {
  const { transaction } = chain.mint('ac', { from: chain.node('a') })
  return mintPreimage({ transaction, input: 1, spent: chain.node('a') })
}
