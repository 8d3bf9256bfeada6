import { createHash } from 'node:crypto'
import { fromHex, toHex } from '../../../backend/src/protocol/bytes.js'
import { readInscription } from '../../../backend/src/protocol/inscription.js'
import { decodeMineNode, encodeMineNode } from '../../../backend/src/protocol/mine-node.js'
import { checkMint, encodeNameOutput } from '../../../backend/src/protocol/mint.js'
import { formatOutpoint, parseOutpoint } from '../../../backend/src/protocol/outpoint.js'
import { deploymentOf, PROFILES } from '../../../backend/src/protocol/profile.js'
import { mainnetTransaction, mainnetVectors } from '../../support/protocol/mainnet-vectors.js'

const vectors = mainnetVectors()
const mainnet = deploymentOf(PROFILES.mainnet)

if (vectors === undefined || mainnet === undefined) {
  test.skip('vectors of the live chain (../shared/vectors/mainnet is absent)', () => undefined)
} else {
  test('the profile knows the tree of the live chain', () => {
    expect(formatOutpoint(mainnet.genesis)).toBe(vectors.mineTree.genesis)
    expect(mainnet.difficulty).toBe(vectors.mineTree.difficulty)
  })

  describe.each(vectors.mineTree.mints)('the live mint $txid', (vector) => {
    const transaction = mainnetTransaction(vector.txid)
    const { txid, vout } = parseOutpoint(vector.spends)
    const spent = mainnetTransaction(txid).outputs[vout]
    if (spent === undefined) throw new Error(`no output ${vector.spends}`)

    test.each([
      ['with the output it spends', { spent }],
      ['with the word of its preimage', {}],
    ])('is a mint %s', (_, given) => {
      const mint = checkMint({ transaction, input: 0, deployment: mainnet, ...given })
      expect(mint).toMatchObject({
        name: vector.name.name,
        domain: vector.restated.domain,
        character: vector.char,
        nonce: fromHex(vector.nonce),
        ownerLock: fromHex(vector.name.lock),
        seed: fromHex(vector.hash256),
      })
      expect(toHex(mint.restated.claimed)).toBe(vector.restated.claimed)
      expect(toHex(mint.child.claimed)).toBe(vector.child.claimed)
      expect(mint.child.domain).toBe(vector.child.domain)
    })

    test('holds nodes and a name that are written as they are read', () => {
      expect(toHex(decodeMineNode(spent.lockingScript).seed)).toBe(vector.seedBefore)
      for (const { lockingScript } of [spent, ...transaction.outputs.slice(0, 2)]) {
        expect(toHex(encodeMineNode(decodeMineNode(lockingScript)))).toBe(toHex(lockingScript))
      }
      const { name, lock } = vector.name
      const written = encodeNameOutput({ ownerLock: fromHex(lock), name, deployment: mainnet })
      expect(toHex(written)).toBe(toHex(transaction.outputs[2]?.lockingScript ?? new Uint8Array()))
    })

    test('inscribes the name', () => {
      const { content } = readInscription(transaction.outputs[2]?.lockingScript ?? new Uint8Array())
      expect(content).toEqual({
        contentType: 'application/op-ns',
        body: new TextEncoder().encode(vector.name.name),
        source: 'envelope',
      })
    })
  })

  test.each(vectors.content)('the live content of $outpoint', (vector) => {
    const { txid, vout } = parseOutpoint(vector.outpoint)
    const { content } = readInscription(
      mainnetTransaction(txid).outputs[vout]?.lockingScript ?? new Uint8Array(),
    )
    expect(content?.contentType).toBe(vector.contentType)
    const body = content?.body ?? new Uint8Array()
    expect(body).toHaveLength(vector.bytes)
    if (vector.sha256 !== undefined)
      expect(createHash('sha256').update(body).digest('hex')).toBe(vector.sha256)
    if (vector.text !== undefined) expect(new TextDecoder().decode(body)).toBe(vector.text)
  })

  test('the live MAP of an item, its JSON as text', () => {
    const item = mainnetTransaction('34adf92c766e11a656d3ff3508df7b1a31405821bf734bc9bef9fb43fcf701f9')
    const { map } = readInscription(item.outputs[0]?.lockingScript ?? new Uint8Array())
    expect(map).toHaveLength(1)
    const [set] = map
    const entries = set?.command === 'SET' ? new Map(set.entries) : new Map()
    expect([...entries.keys()]).toEqual(['app', 'type', 'subType', 'subTypeData', 'royalties'])
    expect(JSON.parse(entries.get('royalties') ?? '')).toEqual(expect.any(Array))
  })
}
