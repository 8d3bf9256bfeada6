import './no-eval.js'

// Loaded when somebody begins to mine: the search, transactions, wallets. It is six times as large as the script of the page and
// bundled separately, so the two share no classes: neither recognises errors of the other by class.

export { OrderError, readOrder } from './mining-order.js'
export { resend, runOrder } from './mining-run.js'
export { cardOf, MintCard } from './mint-card.js'
