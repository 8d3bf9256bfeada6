import fc from 'fast-check'
import { ascii, concatBytes, utf8 } from '../../backend/src/protocol/bytes.js'
import { encodeEnvelope } from '../../backend/src/protocol/envelope.js'
import { claim, decodeMineNode, encodeMineNode, type MineNode } from '../../backend/src/protocol/mine-node.js'
import {
  checkMint,
  encodeNameOutput,
  MintError,
  meetsDifficulty,
  mintPreimage,
  proofOfWork,
} from '../../backend/src/protocol/mint.js'
import { encodePush, readPushes } from '../../backend/src/protocol/script-walk.js'
import { readTransaction } from '../../backend/src/protocol/transaction.js'
import { bytes, mutated } from '../support/arbitraries.js'
import {
  FakeChain,
  type FakeNode,
  type FakeOutput,
  type FakeTransaction,
  type MintOverrides,
  p2pkh,
} from '../support/fake-chain.js'

// One rule of a mint broken at a time, every rule: a long file, as there are many.

const chain = new FakeChain()
chain.mintAll('ab')
const { deployment } = chain

/** A mint of `ac`, from the live node of `a`, which stays live. */
function attempt(overrides: MintOverrides = {}): FakeTransaction {
  return chain.mint('ac', { from: chain.node('a'), ...overrides })
}

function check(mint: FakeTransaction, more: Partial<Parameters<typeof checkMint>[0]> = {}) {
  return checkMint({ transaction: mint.transaction, input: 0, deployment, ...more })
}

const PARENT = chain.node('a')

/** The live node of `a` with parts of its state replaced; what stays fits. */
function nodeWith(parts: Partial<MineNode>, satoshis = 1): FakeNode {
  const lockingScript = encodeMineNode({ ...decodeMineNode(PARENT.lockingScript), ...parts })
  return { ...PARENT, satoshis, lockingScript }
}

function changed(vout: number, change: (output: FakeOutput) => FakeOutput): MintOverrides {
  return { outputs: (outputs) => outputs.map((output, i) => (i === vout ? change(output) : output)) }
}

function restated(vout: number, change: (node: MineNode) => Partial<MineNode>): MintOverrides {
  return changed(vout, (output) => {
    const node = decodeMineNode(output.lockingScript)
    return { ...output, lockingScript: encodeMineNode({ ...node, ...change(node) }) }
  })
}

describe('no mint', () => {
  const otherCode = { code: ascii('another covenant') }
  const decoy = encodeEnvelope({ contentType: 'application/name-claim', body: utf8('ac') })

  test.each<[string, string, MintOverrides]>([
    ['a character that names do not have', 'BAD_CHARACTER', { character: 'C' }],
    ['a character of none', 'BAD_CHARACTER', { character: '\0' }],
    ['a dot', 'BAD_CHARACTER', { character: '.' }],
    ['two characters', 'BAD_CHARACTER', pushing({ 0: ascii('cc') })],
    ['no character', 'BAD_CHARACTER', pushing({ 0: new Uint8Array() })],
    ['a character that was claimed', 'CLAIMED', { character: 'b' }],
    ['too little work', 'BAD_WORK', { badWork: true }],
    ['a nonce other than the one worked for', 'BAD_WORK', pushing({ 1: nonceWithoutWork() })],
    ['another character than the outputs', 'BAD_WORK', pushing({ 0: characterWithoutWork() })],
    ['work for another seed', 'BAD_WORK', { nonce: nonceForEmptySeedOnly() }],
    ['an owner lock other than the output', 'BAD_OUTPUT 2', pushing({ 2: p2pkh(2) })],
    [
      'an envelope in the owner lock instead of the covenant’s',
      'BAD_OUTPUT 2',
      pushing({ 2: concatBytes(p2pkh(1), decoy) }),
    ],
    ['a trailing push of nothing', 'BAD_UNLOCKING', pushing({ 3: new Uint8Array() })],
    ['a trailing push of something else', 'BAD_UNLOCKING', pushing({ 3: ascii('other') })],
    ['a preimage of nothing', 'BAD_UNLOCKING', pushing({ 4: new Uint8Array() })],
    ['a preimage of another input', 'BAD_UNLOCKING', pushing({ 4: preimageOfAnother() })],
    ['four pushes', 'BAD_UNLOCKING', { unlockingScript: (script) => script.subarray(2) }],
    ['six pushes', 'BAD_UNLOCKING', { unlockingScript: (script) => concatBytes(script, Uint8Array.of(0)) }],
    [
      'a push before the five',
      'BAD_UNLOCKING',
      { unlockingScript: (script) => concatBytes(Uint8Array.of(0), script) },
    ],
    [
      'code after the pushes',
      'BAD_UNLOCKING',
      { unlockingScript: (script) => concatBytes(script, Uint8Array.of(0x61)) },
    ],
    [
      'a push that breaks off',
      'BAD_UNLOCKING',
      { unlockingScript: (script) => concatBytes(script, Uint8Array.of(1)) },
    ],
    ['no unlocking script', 'BAD_UNLOCKING', { unlockingScript: () => new Uint8Array() }],
    ['no outputs', 'BAD_OUTPUT 0', { outputs: () => [] }],
    ['one output', 'BAD_OUTPUT 1', { outputs: (all) => all.slice(0, 1) }],
    ['no name', 'BAD_OUTPUT 2', { outputs: (all) => all.slice(0, 2) }],
    ['the nodes swapped', 'BAD_OUTPUT 0', { outputs: ([a, b, ...rest]) => [b, a, ...rest].filter(isOutput) }],
    [
      'the child and the name swapped',
      'BAD_OUTPUT 1',
      { outputs: ([a, b, c]) => [a, c, b].filter(isOutput) },
    ],
    [
      'an output before them',
      'BAD_OUTPUT 0',
      { outputs: (all) => [{ satoshis: 1, lockingScript: p2pkh(1) }, ...all] },
    ],
    ...[0, 1, 2].flatMap(
      (vout): Array<[string, string, MintOverrides]> => [
        [
          `2 satoshis in output ${vout}`,
          `BAD_OUTPUT ${vout}`,
          changed(vout, (output) => ({ ...output, satoshis: 2 })),
        ],
        [
          `no satoshis in output ${vout}`,
          `BAD_OUTPUT ${vout}`,
          changed(vout, (output) => ({ ...output, satoshis: 0 })),
        ],
        [
          `another script in output ${vout}`,
          `BAD_OUTPUT ${vout}`,
          changed(vout, (output) => ({ ...output, lockingScript: p2pkh(1) })),
        ],
      ],
    ),
    [
      'a restated node with a bit too many',
      'BAD_OUTPUT 0',
      restated(0, ({ claimed }) => ({ claimed: claim(claimed, 0x7a) })),
    ],
    [
      'a restated node with the bit not set',
      'BAD_OUTPUT 0',
      restated(0, () => ({ claimed: decodeMineNode(PARENT.lockingScript).claimed })),
    ],
    ['a restated node of another domain', 'BAD_OUTPUT 0', restated(0, () => ({ domain: 'b' }))],
    [
      'a restated node with the seed of before',
      'BAD_OUTPUT 0',
      restated(0, () => ({ seed: decodeMineNode(PARENT.lockingScript).seed })),
    ],
    ['a restated node of another tree', 'BAD_OUTPUT 0', restated(0, () => ({ genesis: PARENT.outpoint }))],
    ['a restated node without its tree', 'BAD_OUTPUT 0', restated(0, () => ({ genesis: undefined }))],
    ['a restated node with other code', 'BAD_OUTPUT 0', restated(0, () => otherCode)],
    [
      'a child with a bit set',
      'BAD_OUTPUT 1',
      restated(1, ({ claimed }) => ({ claimed: claim(claimed, 0x61) })),
    ],
    ['a child of another domain', 'BAD_OUTPUT 1', restated(1, () => ({ domain: 'ad' }))],
    ['a child with another seed', 'BAD_OUTPUT 1', restated(1, () => ({ seed: new Uint8Array(32) }))],
    ['a child of another tree', 'BAD_OUTPUT 1', restated(1, () => ({ genesis: PARENT.outpoint }))],
    ['a child with other code', 'BAD_OUTPUT 1', restated(1, () => otherCode)],
    [
      'another name in the name output',
      'BAD_OUTPUT 2',
      changed(2, (output) => ({ ...output, lockingScript: nameScript('ad') })),
    ],
    [
      'the name for another owner',
      'BAD_OUTPUT 2',
      changed(2, (output) => ({ ...output, lockingScript: nameScript('ac', p2pkh(2)) })),
    ],
    [
      'a node of another tree',
      'OTHER_TREE',
      { from: nodeWith({ genesis: { ...deployment.genesis, vout: 1 } }) },
    ],
    [
      'a root at another outpoint',
      'OTHER_TREE',
      { from: nodeWith({ genesis: undefined, seed: new Uint8Array() }) },
    ],
    [
      'the root with a seed',
      'OTHER_TREE',
      { from: { ...nodeWith({ genesis: undefined }), outpoint: deployment.genesis } },
    ],
    ['a node of 2 satoshis', 'NOT_A_NODE', { from: nodeWith({}, 2) }],
  ])('has %s', (_, expected, overrides) => {
    const mint = attempt(overrides)
    expect(codeOf(() => check(mint))).toBe(expected)
    expect(codeOf(() => check(mint, { spent: overrides.from ?? PARENT }))).toBe(expected)
  })

  test('spends an output that is no node', () => {
    const { satoshis, outpoint } = PARENT
    const spent = { satoshis, outpoint, lockingScript: p2pkh(1) }
    const mint = attempt({
      unlocking: (pushes) => ({
        ...pushes,
        preimage: concatBytes(pushes.preimage.subarray(0, 104), ...lockInPreimage(pushes.preimage)),
      }),
    })
    for (const given of [{ spent }, {}]) {
      expect(() => check(mint, given)).toThrow(
        expect.objectContaining({ code: 'NOT_A_NODE', name: 'MintError' }),
      )
    }
  })

  test('states another output in its preimage than it spends', () => {
    const mint = attempt()
    for (const spent of [
      nodeWith({ domain: 'b' }),
      nodeWith({}, 2),
      { ...PARENT, lockingScript: p2pkh(1) },
    ]) {
      expect(codeOf(() => check(mint, { spent }))).toBe('BAD_UNLOCKING')
    }
  })

  test('has a preimage with any byte changed', () => {
    const mint = attempt()
    const { length } = mintPreimage({ transaction: mint.transaction, input: 0, spent: PARENT })
    for (let at = 0; at < length; at++) {
      const broken = attempt({
        unlocking: (pushes) => {
          const preimage = pushes.preimage.slice()
          preimage[at] = (preimage[at] ?? 0) ^ 0x01
          return { ...pushes, preimage }
        },
      })
      expect(codeOf(() => check(broken, { spent: PARENT }))).toBe('BAD_UNLOCKING')
      expect(codeOf(() => check(broken))).toMatch(
        /^(BAD_UNLOCKING|NOT_A_NODE|OTHER_TREE|CLAIMED|BAD_WORK|BAD_OUTPUT \d)$/,
      )
    }
  })

  test('has any byte of outputs 0 to 2 changed', () => {
    const right = attempt()
    for (const vout of [0, 1, 2]) {
      for (let at = 0; at < (right.transaction.outputs[vout]?.lockingScript.length ?? 0); at++) {
        const mint = attempt(
          changed(vout, ({ satoshis, lockingScript }) => {
            const flipped = lockingScript.slice()
            flipped[at] = (flipped[at] ?? 0) ^ 0x80
            return { satoshis, lockingScript: flipped }
          }),
        )
        expect(codeOf(() => check(mint))).toBe(`BAD_OUTPUT ${vout}`)
      }
    }
  })

  test('belongs to another deployment', () => {
    const mint = attempt()
    const changes = [
      [{ genesis: { ...deployment.genesis, vout: 1 } }, 'OTHER_TREE'],
      [{ difficulty: 200 }, 'BAD_WORK'],
      [{ nameContentType: 'text/plain' }, 'BAD_OUTPUT 2'],
      [{ marker: ascii('other') }, 'BAD_OUTPUT 2'],
      [{ tld: 'test' }, 'BAD_OUTPUT 2'],
    ] as const
    for (const [change, code] of changes) {
      expect(codeOf(() => check(mint, { deployment: { ...deployment, ...change } }))).toBe(code)
    }
  })

  test('is a MintError, whatever bytes the transaction and its script are', () => {
    const { raw, transaction } = attempt()
    const unlocking = transaction.inputs[0]?.unlockingScript ?? new Uint8Array()
    const scripts = fc.oneof(bytes(), mutated(fc.constant(unlocking)))
    fc.assert(
      fc.property(scripts, mutated(fc.constant(raw)), fc.boolean(), (script, wholly, withSpent) => {
        const attempts = [
          {
            ...transaction,
            inputs: transaction.inputs.map((input) => ({ ...input, unlockingScript: script })),
          },
        ]
        try {
          attempts.push(readTransaction(wholly))
        } catch {
          // Not a transaction any more, and readTransaction has its own tests.
        }
        for (const any of attempts) {
          try {
            checkMint({ transaction: any, input: 0, deployment, ...(withSpent && { spent: PARENT }) })
          } catch (error) {
            expect(error).toBeInstanceOf(MintError)
          }
        }
      }),
      { numRuns: 500 },
    )
  })
})

function codeOf(act: () => unknown): string {
  try {
    act()
    return 'no error'
  } catch (error) {
    if (!(error instanceof MintError)) throw error
    return error.vout === undefined ? error.code : `${error.code} ${error.vout}`
  }
}

/** Replaces pushes of the unlocking script, by their position. */
function pushing(replaced: Readonly<Record<number, Uint8Array>>): MintOverrides {
  return {
    unlockingScript: (script) =>
      concatBytes(...readPushes(script, { limit: 5 }).map((push, i) => encodePush(replaced[i] ?? push))),
  }
}

function nameScript(name: string, ownerLock = p2pkh(1)): Uint8Array {
  return encodeNameOutput({ ownerLock, name, deployment })
}

function isOutput(output: FakeOutput | undefined): output is FakeOutput {
  return output !== undefined
}

function works(seed: Uint8Array, character: string, nonce: Uint8Array): boolean {
  return meetsDifficulty(proofOfWork({ seed, character, nonce }), deployment.difficulty)
}

function liveSeed(): Uint8Array {
  return decodeMineNode(chain.node('a').lockingScript).seed
}

function firstNonce(wanted: (nonce: Uint8Array) => boolean): Uint8Array {
  for (let i = 0; i < 65536; i++) {
    const nonce = Uint8Array.of(i & 0xff, i >> 8)
    if (wanted(nonce)) return nonce
  }
  throw new Error('no such nonce')
}

function nonceWithoutWork(): Uint8Array {
  return firstNonce((nonce) => !works(liveSeed(), 'c', nonce))
}

function nonceForEmptySeedOnly(): Uint8Array {
  return firstNonce((nonce) => works(new Uint8Array(), 'c', nonce) && !works(liveSeed(), 'c', nonce))
}

/** A character that is free but for which the nonce of `attempt` is no solution. */
function characterWithoutWork(): Uint8Array {
  const { nonce } = check(attempt())
  const other = [...'defghij'].find((character) => !works(liveSeed(), character, nonce))
  return ascii(other ?? '')
}

function preimageOfAnother(): Uint8Array {
  const { transaction } = attempt()
  return mintPreimage({ transaction, input: 1, spent: PARENT })
}

/** A preimage from its script on, the script being a plain lock. */
function lockInPreimage(preimage: Uint8Array): Uint8Array[] {
  return [Uint8Array.of(p2pkh(1).length), p2pkh(1), preimage.subarray(-52)]
}
