/**
 * How many questions of a wallet are coming, as a sentence. By wallet-toolbox (`WalletPermissionsManager`), a wallet asks its user
 * about a transaction that costs something, and once about a basket and about the identity key; but about no key of level 0, no
 * signature by one, and nothing that only sends.
 *
 * @param change.isIdentityNeeded Whether the identity key is asked for, which this page has not seen yet.
 */
export function promptsText({
  isFake,
  isIdentityNeeded,
}: {
  isFake: boolean
  isIdentityNeeded: boolean
}): string {
  if (isFake) return 'The money of this network is fake: nobody is asked, and nothing is paid.'
  if (!isIdentityNeeded) return 'Your wallet will ask you once, for the payment.'
  return 'Your wallet will ask you twice: the first time whether this page may see your identity key, and then for the payment.'
}
