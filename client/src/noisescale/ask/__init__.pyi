from noisescale.ask.advisor import Advisor as Advisor
from noisescale.ask.recommendation import Recommendation as Recommendation
