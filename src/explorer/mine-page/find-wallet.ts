import { WalletClient } from '@bsv/sdk'
import { MiningError } from '../../mining/mining-error.js'

/**
 * Finds the wallet (BRC-100) in this browser or on this machine. Asks only for its version, which needs no consent of the user.
 *
 * @throws MiningError `BAD_WALLET` if none answers.
 */
export async function findWallet(): Promise<WalletClient> {
  // A wallet in the browser itself needs no search on the machine.
  const wallet = new WalletClient('CWI' in window ? 'window.CWI' : 'auto', location.hostname)
  try {
    await wallet.connectToSubstrate()
  } catch (cause) {
    throw new MiningError(
      'BAD_WALLET',
      'no wallet answers in this browser or on this machine: start one and try again',
      { cause },
    )
  }
  return wallet
}
