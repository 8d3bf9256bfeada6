import { PrivateKey, Transaction } from '@bsv/sdk'
import { toHex } from '../../../backend/src/protocol/bytes.js'
import { decodeMineNode } from '../../../backend/src/protocol/mine-node.js'
import { formatOutpoint, parseOutpoint } from '../../../backend/src/protocol/outpoint.js'
import { deploymentOf, PROFILES } from '../../../backend/src/protocol/profile.js'
import { fundWithKey } from '../../../src/mining/fund-with-key.js'
import { searchNonce } from '../../../src/mining/search/search-nonce.js'
import { p2pkh } from '../../support/protocol/fake-chain.js'
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
      const { transaction, mint } = await fundWithKey({
        plan: { node, deployment: mainnet, character, nonce, ownerLock: p2pkh(4) },
        source,
        coins: [{ transaction: coinsFor(key, 50_000), vout: 0 }],
        key,
      })
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
}
