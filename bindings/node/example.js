// One limit by key. With the package installed: require('weir').
'use strict';

const {Limiter} = require('./index.js');

const limiter = new Limiter('5/s burst 3');
for (let request = 1; request <= 5; ++request) {
  const decision = limiter.check('user:42');
  console.log(decision.allowed
    ? `request ${request}: allowed, ${decision.remaining} left`
    : `request ${request}: denied, try again in ${Math.ceil(decision.retryAfterMs)} ms`);
}
