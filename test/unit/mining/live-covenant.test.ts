import { PrivateKey, Transaction } from '@bsv/sdk'
import { fromHex, toHex } from '../../../backend/src/protocol/bytes.js'
import { decodeMineNode, encodeMineNode } from '../../../backend/src/protocol/mine-node.js'
import { followMint, readMintOutputs } from '../../../backend/src/protocol/mint.js'
import { formatOutpoint, parseOutpoint } from '../../../backend/src/protocol/outpoint.js'
import { deploymentOf, PROFILES } from '../../../backend/src/protocol/profile.js'
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
  // Each with a nonce that `searchNonce` has found. Live no more, perhaps; but their covenant is the one that every node of that tree has.
  test.each([
    ['the root', `${first?.txid}_0`, 'q', '516b1abc887b0728bc3d3d3e8f1b38fb9547f33f5504', 'q'],
    ['a node', `${second?.txid}_1`, '-', 'b8f4ec2813a8248db895e7edc8c4eae81ff4e903d86a', 'sh-'],
  ])(
    'mined from %s of the live tree, a name is let through by its covenant',
    async (_, text, character, nonce, name) => {
      const outpoint = parseOutpoint(text)
      const source = provenAlone(Transaction.fromHex(toHex(mainnetTransaction(outpoint.txid).raw)))
      const output = mainnetTransaction(outpoint.txid).outputs[outpoint.vout]
      if (output === undefined) throw new Error(`no output ${formatOutpoint(outpoint)}`)
      const node = { ...output, outpoint }
      const key = new PrivateKey(3)
      const { transaction, mint } = await payForMint(
        {
          plan: { node, deployment: mainnet, character, nonce: fromHex(nonce), ownerLock: p2pkh(4) },
          source,
        },
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
  /** For `q`, and for `q` and eight zeros. */
  const nonce = fromHex('0000000000000000f87e15ba3709ee261e1f6519f7ee')

  test('names of any length are followed as its script writes them', () => {
    for (const length of [74, 75, 76, 77, 126, 127, 128, 254, 255, 256, 1000]) {
      const domain = 'x'.repeat(length)
      const name = `${domain}q`
      expect(judged({ domain, character: 'q', nonce })).toEqual({ name, byOutputs: name })
    }
  })

  test('zero bytes may follow the character, and nothing else', () => {
    for (const zeros of [0, 1, 2, 8]) {
      const character = `q${'\0'.repeat(zeros)}`
      const name = `sh${character}`
      expect(judged({ domain: 'sh', character, nonce: nonce.subarray(zeros) })).toEqual({
        ...{ name, byOutputs: name },
      })
    }
    // Its work is that of `q` and a nonce that begins with 0x80.
    const other = fromHex('4b075ffecde71e1b46c36650b41bb7e4bb5463256e')
    expect(judged({ domain: 'sh', character: 'q\x80', nonce: other })).toBe('refused by the script')
  })
}
