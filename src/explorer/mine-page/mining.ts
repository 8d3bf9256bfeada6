import './no-eval.js'

// What is loaded when somebody begins to mine: the search, transactions, wallets. It is six times as large as the script of
// the page, which is bundled by itself: they share no class, and tell no error of the other by its class.

export { OrderError, readOrder } from './mining-order.js'
export { resend, runOrder } from './mining-run.js'
export { cardOf, MintCard } from './mint-card.js'
