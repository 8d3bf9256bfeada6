import { utf8 } from '../../../backend/src/protocol/bytes.js'
import { COVENANT_LIMITS } from '../../../backend/src/protocol/mint.js'
import { formatOutpoint } from '../../../backend/src/protocol/outpoint.js'
import { deploymentOf, PROFILES } from '../../../backend/src/protocol/profile.js'

const genesis = { txid: 'ab'.repeat(32), vout: 3 }

test('either profile reads the content types of both', () => {
  const { local, mainnet } = PROFILES
  expect(new Set(local.directoryContentTypes)).toEqual(new Set(mainnet.directoryContentTypes))
  expect(new Set(local.streamChunkContentTypes)).toEqual(new Set(mainnet.streamChunkContentTypes))
})

test('a local network has no tree before it has a genesis', () => {
  expect(deploymentOf(PROFILES.local)).toBeUndefined()
  expect(deploymentOf(PROFILES.local, { difficulty: 8 })).toBeUndefined()
  expect(deploymentOf(PROFILES.local, { genesis })).toEqual({
    ...{ genesis, covenantVersion: 1, difficulty: 22, nameContentType: 'application/name-claim' },
    marker: utf8(PROFILES.local.nameMarker),
    tld: undefined,
    limits: COVENANT_LIMITS,
  })
})

test('the live tree is known, and what the operator sets goes before it', () => {
  const live = deploymentOf(PROFILES.mainnet)
  expect(live && formatOutpoint(live.genesis)).toBe(PROFILES.mainnet.genesis)
  const set = { genesis, difficulty: 8, nameMarker: 'mark', nameTld: 'test' }
  expect(deploymentOf(PROFILES.mainnet, set)).toEqual({
    ...{ genesis, covenantVersion: 1, difficulty: 8, nameContentType: 'application/op-ns' },
    ...{ marker: utf8('mark'), tld: 'test' },
  })
})

test.each([
  ['text', formatOutpoint(genesis)],
  ['a txid that is cut', { ...genesis, txid: genesis.txid.slice(2) }],
  ['no whole output', { ...genesis, vout: 1.5 }],
])('a genesis that is no outpoint is refused: %s', (_, value) => {
  const wrong = value as unknown as typeof genesis
  expect(() => deploymentOf(PROFILES.mainnet, { genesis: wrong })).toThrow(/not an outpoint/)
})
