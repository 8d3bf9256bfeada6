import { utf8 } from '../../../backend/src/protocol/bytes.js'
import { decodeMineNode, versionOfCode } from '../../../backend/src/protocol/mine-node.js'
import { parseOutpoint } from '../../../backend/src/protocol/outpoint.js'
import { covenantCode } from '../../../src/mining/covenant.js'
import { covenantChain, covenantMint, refusalByCheck } from '../../support/mining/covenant-mints.js'
import { unboundMints } from '../../support/protocol/broken-mints.js'
import { FakeChain } from '../../support/protocol/fake-chain.js'
import { mainnetTransaction, mainnetVectors } from '../../support/protocol/mainnet-vectors.js'

describe('the version of a covenant is read off its code', () => {
  test.each([
    ['the usual terms', {}],
    ['one bit of work', { difficulty: 1 }],
    ['32 bits of work', { difficulty: 32 }],
    ['long terms', { nameContentType: 'x'.repeat(255), marker: utf8('x'.repeat(75)), tld: 'x'.repeat(73) }],
  ])('1 or 2 for one of %s', (_, terms) => {
    const usual = { difficulty: 22, nameContentType: 'application/name-claim', marker: utf8('m') }
    for (const covenantVersion of [1, 2] as const) {
      expect(versionOfCode(covenantCode({ covenantVersion, ...usual, ...terms }))).toBe(covenantVersion)
    }
  })

  test('none for any other', () => {
    const { code } = decodeMineNode(new FakeChain().node('').lockingScript)
    const ours = covenantChain().node('').lockingScript
    for (const other of [
      code,
      new Uint8Array(),
      ours.subarray(0, 139),
      ours.map((byte, i) => (i === 0 ? 0 : byte)),
    ])
      expect(versionOfCode(other)).toBeUndefined()
  })
})

const vectors = mainnetVectors()
;(vectors === undefined ? test.skip : test)('the live covenant says none', () => {
  const outpoint = parseOutpoint(vectors?.mineTree.mints[0]?.spends ?? '')
  const output = mainnetTransaction(outpoint.txid).outputs[outpoint.vout]
  expect(versionOfCode(decodeMineNode(output?.lockingScript ?? new Uint8Array()).code)).toBeUndefined()
})

describe.each([1, 2] as const)('a tree of version %i', (covenantVersion) => {
  const chain = covenantChain({ covenantVersion })
  chain.mintAll('ab')
  const { deployment } = chain
  const wrong = { ...deployment, covenantVersion: covenantVersion === 1 ? (2 as const) : (1 as const) }
  const { covenantVersion: _, ...without } = deployment

  test.each(unboundMints(chain))(
    'is read by its own rules, whatever the deployment says: $has',
    ({ code, overrides }) => {
      const mint = covenantMint(chain, 'ac', { from: chain.node('a'), ...overrides })
      const expected = covenantVersion === 1 ? undefined : code
      for (const said of [deployment, wrong, without as typeof deployment])
        expect(refusalByCheck({ ...mint, deployment: said })).toBe(expected)
    },
  )
})
