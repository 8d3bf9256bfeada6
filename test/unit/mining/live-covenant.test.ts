import { PrivateKey, Transaction } from '@bsv/sdk'
import { toHex } from '../../../backend/src/protocol/bytes.js'
import { decodeMineNode, encodeMineNode } from '../../../backend/src/protocol/mine-node.js'
import { followMint, readMintOutputs } from '../../../backend/src/protocol/mint-outputs.js'
import { formatOutpoint, parseOutpoint } from '../../../backend/src/protocol/outpoint.js'
import { deploymentOf, PROFILES } from '../../../backend/src/protocol/profile.js'
import { searchNonce } from '../../../src/mining/search/search-nonce.js'
import { payWithKey } from '../../../src/payments/key.js'
import { payForMint } from '../../../src/payments/mints.js'
import { refusalByScript } from '../../support/mining/covenant-mints.js'
import { FakeChain, p2pkh } from '../../support/protocol/fake-chain.js'
import { mainnetTransaction, mainnetVectors } from '../../support/protocol/mainnet-vectors.js'
import { coinsFor, provenAlone } from '../../support/protocol/transactions.js'

const vectors = mainnetVectors()
const mainnet = deploymentOf(PROFILES.mainnet)

if (vectors === undefined || mainnet === undefined) {
  test.skip('nodes of the live tree (../shared/vectors/mainnet is absent)', () => undefined)
} else {
  const [first, second] = vectors.mineTree.mints
  // Live no more, perhaps; but their covenant is the one that every node of that tree has.
  test.each([
    ['the root', `${first?.txid}_0`, 'q', 'q'],
    ['a node', `${second?.txid}_1`, '-', 'sh-'],
  ])(
    'mined from %s of the live tree, a name is let through by its covenant',
    async (_, text, character, name) => {
      const outpoint = parseOutpoint(text)
      const source = provenAlone(Transaction.fromHex(toHex(mainnetTransaction(outpoint.txid).raw)))
      const output = mainnetTransaction(outpoint.txid).outputs[outpoint.vout]
      if (output === undefined) throw new Error(`no output ${formatOutpoint(outpoint)}`)
      const node = { ...output, outpoint }
      const { seed } = decodeMineNode(output.lockingScript)
      const { nonce } = await searchNonce({ seed, character, difficulty: mainnet.difficulty, workers: 0 })
      const key = new PrivateKey(3)
      const { transaction, mint } = await payForMint(
        { plan: { node, deployment: mainnet, character, nonce, ownerLock: p2pkh(4) }, source },
        payWithKey({ key, coins: [{ transaction: coinsFor(key, 50_000), vout: 0 }] }).pay,
      )
      expect(mint.name).toBe(name)
      expect(await transaction.verify('scripts only')).toBe(true)

      // And it does look at what it lets through.
      const [, , nameOutput] = transaction.outputs
      if (nameOutput === undefined) throw new Error('no output 2')
      nameOutput.satoshis = 2
      await transaction.sign()
      await expect(transaction.verify('scripts only')).rejects.toThrow(
        'must be truthy after script evaluation',
      )
    },
  )

  // Nodes that nobody mined: their seed is that of a node that somebody did, so that one solution does for all of them.
  const outpoint = parseOutpoint(`${second?.txid}_1`)
  const output = mainnetTransaction(outpoint.txid).outputs[outpoint.vout]
  if (output === undefined) throw new Error(`no output ${formatOutpoint(outpoint)}`)
  const node = decodeMineNode(output.lockingScript)
  /** What the script and the index say of a mint from such a node. */
  const judged = (mint: { domain: string; character: string; nonce: Uint8Array }) => {
    const { domain, character, nonce } = mint
    const chain = new FakeChain({ ...mainnet, nameMarker: Buffer.from(mainnet.marker).toString() })
    const { genesis } = mainnet
    const spent = { ...output, outpoint, lockingScript: encodeMineNode({ ...node, genesis, domain }) }
    for (let sequence = 0; sequence < 64; sequence++) {
      const made = chain.mint('?', { from: spent, genesis, character, nonce, sequence, funding: [] })
      const spend = { transaction: made.transaction, input: 0, spent, deployment: mainnet }
      if (refusalByScript(spend, 'block') === undefined)
        return { name: followMint(spend).name, byOutputs: readMintOutputs(spend).name }
    }
    return 'refused by the script'
  }
  const solved = async (character: string, noncePrefix: Uint8Array) =>
    (await searchNonce({ seed: node.seed, character, difficulty: 22, noncePrefix, workers: 0 })).nonce

  test('names of any length are followed as its script writes them', async () => {
    const nonce = await solved('q', new Uint8Array())
    for (const length of [74, 75, 76, 77, 126, 127, 128, 254, 255, 256, 1000]) {
      const domain = 'x'.repeat(length)
      const name = `${domain}q`
      expect(judged({ domain, character: 'q', nonce })).toEqual({ name, byOutputs: name })
    }
  })

  test('zero bytes may follow the character, and nothing else', async () => {
    const nonce = await solved('q', new Uint8Array(8))
    for (const zeros of [0, 1, 2, 8]) {
      const character = `q${'\0'.repeat(zeros)}`
      const name = `sh${character}`
      expect(judged({ domain: 'sh', character, nonce: nonce.subarray(zeros) })).toEqual({
        ...{ name, byOutputs: name },
      })
    }
    const other = await solved('q', Uint8Array.of(0x80))
    expect(judged({ domain: 'sh', character: 'q\x80', nonce: other.subarray(1) })).toBe(
      'refused by the script',
    )
  })
}
