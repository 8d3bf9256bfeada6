/** The pages of a host, each a function from what is known to HTML. */
export { errorPage } from './error-page.js'
export { minePage } from './mine-page.js'
export { FAVICON } from './page.js'
