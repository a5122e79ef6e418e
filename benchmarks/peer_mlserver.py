"""The model of `serving.py` in MLServer: the same calls for the same rows."""

from mlserver import MLModel
from mlserver.codecs import NumpyCodec, PandasCodec, StringCodec
from mlserver.types import InferenceResponse

import mlopt
from mlopt.sweep.predict import predictions


class Adult(MLModel):
    """Rows of many requests in one call: MLServer's adaptive batching gathers them."""

    async def load(self):
        self.loaded = mlopt.load(self.settings.parameters.uri)
        return True

    async def predict(self, payload):
        frame = PandasCodec.decode_request(payload)
        found = predictions(self.loaded, frame, proba=True)
        said = found.pop("prediction").tolist()
        outputs = [StringCodec.encode_output("prediction", said)]
        outputs += [
            NumpyCodec.encode_output(name, found[name].to_numpy(copy=True))
            for name in found
        ]
        return InferenceResponse(model_name=self.name, outputs=outputs)
