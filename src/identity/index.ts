/** For wallets and apps: binds names to identity keys (BRC-174), and moves them. */
export type {
  BindingLayout,
  BindingProfile,
  BindingProtocol,
} from '../../backend/src/protocol/identity-binding.js'
export {
  type BindingSigner,
  type BindingTerms,
  bindingIn,
  bindingLock,
  requireBindingLock,
} from './binding-lock.js'
export { type BindingWallet, draftMove, type Holder, type NameMove } from './move-name.js'
export {
  bindingOf,
  IdentityError,
  type IdentityErrorCode,
  type NameCoin,
  type NameOutput,
  type NameStep,
  nameCoin,
  nameSteps,
} from './name-coin.js'
